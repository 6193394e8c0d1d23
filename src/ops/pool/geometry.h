// Which pixels a pooling window covers: windows of one size a stride apart, or windows of sizes
// that share the image evenly (adaptive). One description for all pooling ops and both backends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/op.h"

namespace netcl {

// One axis of the image.
struct PoolAxis {
  std::int64_t in = 1, out = 1;
  std::int64_t window = 0, stride = 1, padding = 0;  // window 0: adaptive

  bool adaptive() const { return window == 0; }
  // The pixels of window `o`: [begin, end), within the image.
  std::int64_t begin(std::int64_t o) const {
    return adaptive() ? o * in / out : std::max<std::int64_t>(o * stride - padding, 0);
  }
  std::int64_t end(std::int64_t o) const {
    return adaptive() ? ((o + 1) * in + out - 1) / out
                      : std::min(o * stride - padding + window, in);
  }
  // The windows that cover pixel `i`: [first, last], none when last < first.
  std::int64_t first(std::int64_t i) const {
    if (adaptive()) return i * out / in;
    const auto before = i + padding - window;  // the last start that ends before i
    return before < 0 ? 0 : before / stride + 1;
  }
  std::int64_t last(std::int64_t i) const {
    return adaptive() ? ((i + 1) * out + in - 1) / in - 1
                      : std::min((i + padding) / stride, out - 1);
  }
};

struct PoolGeometry {
  std::int64_t planes = 0;
  PoolAxis rows, columns;
  bool count_padding = true;

  // What an average is divided by.
  std::int64_t divisor(std::int64_t oh, std::int64_t ow) const {
    if (!rows.adaptive() && count_padding) return rows.window * columns.window;
    return (rows.end(oh) - rows.begin(oh)) * (columns.end(ow) - columns.begin(ow));
  }
};

// Of a forward op: x (N, C, H, W) and the attributes, which are validated.
PoolGeometry pool_geometry(const char* op, const Shape& x, const Attributes& attributes);
// Of a backward op, whose attributes tell the image's size as well.
PoolGeometry pool_backward_geometry(const char* op, const Shape& dy, const Attributes& attributes);

// On the CPU backend.
void pool_host(const OpCall& call, const PoolGeometry& g, bool max, bool is_backward);

OpDef pool_op(bool max, bool adaptive);
OpDef pool_backward_op(bool max, bool adaptive);

std::vector<OpSample> pool_samples(bool max, bool adaptive);
std::vector<OpSample> pool_backward_samples(bool max, bool adaptive);

}  // namespace netcl
