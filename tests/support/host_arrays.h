// Host arrays for tests of files: made of every dtype, compared bit by bit.
#pragma once

#include <cstring>
#include <string>

#include "netcl/tensor.h"

namespace netcl::test {

// Bytes that differ from place to place; of bool only 0 and 1.
inline HostArray patterned(const Shape& shape, DType dtype, unsigned seed = 1) {
  HostArray array(shape, dtype);
  auto* bytes = static_cast<unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.nbytes(); ++i)
    bytes[i] = static_cast<unsigned char>(dtype == DType::boolean ? (i + seed) % 3 == 0
                                                                  : (i * 37 + seed * 101) % 251);
  return array;
}

template <class T>
HostArray array_of(const Shape& shape, std::initializer_list<T> values) {
  HostArray array(shape, dtype_v<T>);
  std::size_t i = 0;
  for (const auto value : values) array.values<T>()[i++] = value;
  return array;
}

inline bool same_bits(const HostArray& a, const HostArray& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.nbytes() == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0);
}

inline const Shape kManyShapes[] = {
    Shape{},        Shape{0},       Shape{1},       Shape{7},       Shape{2, 3},
    Shape{3, 0, 2}, Shape{1, 1, 1}, Shape{5, 4, 3}, Shape{64, 129}, Shape{2, 1, 3, 1, 2}};

}  // namespace netcl::test
