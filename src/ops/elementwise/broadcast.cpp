#include "ops/elementwise/broadcast.h"

#include <algorithm>

#include "base/check.h"

namespace netcl {

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const auto rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank));
  for (std::int64_t i = 0; i < rank; ++i) {
    const auto size_a = i < rank - a.rank() ? 1 : a[i - (rank - a.rank())];
    const auto size_b = i < rank - b.rank() ? 1 : b[i - (rank - b.rank())];
    if (size_a != size_b && size_a != 1 && size_b != 1)
      fail<ShapeError>("[{}] the shapes must broadcast, equal or 1 on every axis: {} and {}", op,
                       a.to_string(), b.to_string());
    sizes[static_cast<std::size_t>(i)] = size_a == 1 ? size_b : size_a;
  }
  return Shape(std::move(sizes));
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  const auto extra = static_cast<std::size_t>(to.rank() - from.rank());
  Strides result(static_cast<std::size_t>(to.rank()), 0);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (from[axis] == to[axis + static_cast<std::int64_t>(extra)]) result[extra + i] = strides[i];
  }
  return result;
}

bool BroadcastLoops::is_linear(std::size_t operand) const {
  const auto& steps = strides[operand];
  std::int64_t expected = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    if (steps[axis] != expected) return false;
    expected *= sizes[axis];
  }
  return true;
}

BroadcastLoops plan_broadcast(const Shape& shape, std::vector<Strides> operands) {
  BroadcastLoops loops;
  loops.strides.resize(operands.size());
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (shape[i] == 1) continue;
    const bool merges = !loops.sizes.empty() &&
                        std::all_of(operands.begin(), operands.end(),
                                    [&, k = std::size_t{0}](const Strides& s) mutable {
                                      return loops.strides[k++].back() == s[axis] * shape[i];
                                    });
    if (merges)
      loops.sizes.back() *= shape[i];
    else
      loops.sizes.push_back(shape[i]);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (merges)
        loops.strides[k].back() = operands[k][axis];
      else
        loops.strides[k].push_back(operands[k][axis]);
    }
  }
  return loops;
}

}  // namespace netcl
