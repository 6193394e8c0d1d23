// NumPy's broadcasting: which shape results, and the loops over several strided operands at once.
#pragma once

#include <string_view>
#include <vector>

#include "netcl/shape.h"

namespace netcl {

// ShapeError that names the op and both shapes when they do not fit.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

// The strides of an operand of shape `from`, seen as `to`: 0 on the axes that repeat.
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

// The axes of a loop over several operands, outermost first: size-1 axes dropped, neighbours that
// one stride can serve in every operand merged.
struct BroadcastLoops {
  std::vector<std::int64_t> sizes;
  std::vector<Strides> strides;  // per operand, as long as sizes

  // Whether an operand's elements lie one after the other in the order of the loop.
  bool is_linear(std::size_t operand) const;
};

BroadcastLoops plan_broadcast(const Shape& shape, std::vector<Strides> operands);

// `n` blocks of consecutive elements: calls f(offsets of the operands, inner strides, count) for
// runs along the innermost axis between the flat positions `begin` and `end`.
template <class F>
void for_each_run(const BroadcastLoops& loops, std::int64_t begin, std::int64_t end, F&& f) {
  const std::size_t rank = loops.sizes.size(), operands = loops.strides.size();
  std::vector<std::int64_t> offsets(operands), steps(operands);
  const std::int64_t inner = rank == 0 ? 1 : loops.sizes[rank - 1];
  for (std::size_t k = 0; k < operands; ++k) steps[k] = rank == 0 ? 0 : loops.strides[k][rank - 1];
  while (begin < end) {
    std::int64_t rest = begin / inner;
    const std::int64_t first = begin % inner, count = std::min(inner - first, end - begin);
    for (std::size_t k = 0; k < operands; ++k) offsets[k] = first * steps[k];
    for (std::size_t axis = rank; axis-- > 1;) {
      const std::int64_t at = rest % loops.sizes[axis - 1];
      rest /= loops.sizes[axis - 1];
      for (std::size_t k = 0; k < operands; ++k) offsets[k] += at * loops.strides[k][axis - 1];
    }
    f(offsets, steps, count);
    begin += count;
  }
}

}  // namespace netcl
