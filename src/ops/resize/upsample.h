// What the parts of resizing share. Where an output row (or column) of a resized image reads,
// exactly, in integers: rounding of scaled positions would otherwise differ between devices and
// fail on large images.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op.h"

namespace netcl {

struct ResizeAxis {
  std::int64_t from, to;  // sizes
  bool bilinear, align;

  // The position of output `o` is whole + rest / divisor.
  std::int64_t divisor() const {
    if (!bilinear) return to;
    return align ? std::max<std::int64_t>(to - 1, 1) : 2 * to;
  }
  std::int64_t scaled(std::int64_t o) const {
    if (!bilinear) return o * from;
    if (align) return to > 1 ? o * (from - 1) : 0;
    return std::max<std::int64_t>((2 * o + 1) * from - to, 0);
  }
  // Outputs that may read the input `i`: a few more at the ends do no harm.
  std::int64_t first(std::int64_t i) const {
    return from == 1 ? 0 : std::clamp<std::int64_t>((i - 1) * to / from - 2, 0, to - 1);
  }
  std::int64_t last(std::int64_t i) const {
    return from == 1 ? to - 1 : std::clamp<std::int64_t>((i + 2) * to / from + 2, 0, to - 1);
  }
  // How much of input `i` is in output `o`.
  template <class V>
  V weight(std::int64_t o, std::int64_t i) const {
    const auto at = scaled(o), whole = at / divisor();
    if (!bilinear) return whole == i ? V(1) : V(0);
    const V rest = V(at - whole * divisor()) / V(divisor());
    const auto next = std::min(whole + 1, from - 1);
    return (whole == i ? V(1) - rest : V(0)) + (next == i ? rest : V(0));
  }
};

inline bool is_aligned(bool bilinear, const Attributes& attributes) {
  return bilinear && attributes.flag("align_corners");
}

// The images on both sides: of the forward op's input and of its output.
struct ResizedImages {
  std::int64_t planes;
  ResizeAxis rows, columns;

  ResizedImages(const Shape& x, const Shape& y, bool bilinear, const Attributes& attributes)
      : planes(x[0] * x[1]),
        rows{x[2], y[2], bilinear, is_aligned(bilinear, attributes)},
        columns{x[3], y[3], bilinear, is_aligned(bilinear, attributes)} {}
  static ResizedImages of(const OpCall& call, bool bilinear, bool is_backward) {
    const auto &in = call.inputs[0].shape(), &out = call.outputs[0].shape();
    return {is_backward ? out : in, is_backward ? in : out, bilinear, call.attributes};
  }
};

// "" where everything that the kernels compute fits an int.
std::string declines_wide_positions(const OpCall& call, const ExtendedDeviceProfile& profile);

void host_upsample(const OpCall& call, bool bilinear, bool is_backward);
// For CPUs, by rows.
OpVariant upsample_rows_variant(bool bilinear, bool is_backward);

}  // namespace netcl
