// Where an output row (or column) of a resized image reads, exactly, in integers: rounding of
// scaled positions would otherwise differ between devices and fail on large images.
#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace netcl
