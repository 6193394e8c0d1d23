// Loops over two strided arrays at once, reduced to as few axes as possible.
#pragma once

#include <cstdint>
#include <vector>

#include "netcl/shape.h"

namespace netcl {

struct LoopAxis {
  std::int64_t size, to, from;  // strides of the two sides
};

// The axes of a copy, outermost first: size-1 axes dropped, neighbours that one stride can serve
// merged. A contiguous copy is one axis of strides 1; a copy of one element is no axis.
std::vector<LoopAxis> plan_loops(const Shape& shape, const Strides& to, const Strides& from);

inline bool is_linear(const std::vector<LoopAxis>& axes) {
  return axes.empty() || (axes.size() == 1 && axes[0].to == 1 && axes[0].from == 1);
}

}  // namespace netcl
