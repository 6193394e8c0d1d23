// Walking over the elements of a shape by their coordinates. Slow and simple, for references and
// messages.
#pragma once

#include <cstdint>
#include <vector>

#include "netcl/shape.h"

namespace netcl {

using Coordinates = std::vector<std::int64_t>;

// Calls f(coordinates, flat position) for every element in row-major order.
template <class F>
void for_each_element(const Shape& shape, F&& f) {
  Coordinates at(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t flat = 0; flat < shape.numel(); ++flat) {
    f(at, static_cast<std::size_t>(flat));
    for (auto axis = at.size(); axis-- > 0;) {
      if (++at[axis] < shape[static_cast<std::int64_t>(axis)]) break;
      at[axis] = 0;
    }
  }
}

// The coordinates of the element at a flat position.
inline Coordinates coordinates_of(const Shape& shape, std::int64_t flat) {
  Coordinates at(static_cast<std::size_t>(shape.rank()));
  for (auto axis = at.size(); axis-- > 0;) {
    at[axis] = flat % shape[static_cast<std::int64_t>(axis)];
    flat /= shape[static_cast<std::int64_t>(axis)];
  }
  return at;
}

// The flat position of an element.
inline std::size_t flat_position(const Shape& shape, const Coordinates& at) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis)
    flat = flat * shape[static_cast<std::int64_t>(axis)] + at[axis];
  return static_cast<std::size_t>(flat);
}

}  // namespace netcl
