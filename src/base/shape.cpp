// Shape arithmetic with overflow checks.
#include "netcl/shape.h"

#include <limits>

#include "base/check.h"

namespace netcl {
namespace {

std::string joined(const std::vector<std::int64_t>& sizes) {
  std::string text = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(sizes[i]);
  }
  if (sizes.size() == 1) text += ",";
  return text + ")";
}

}  // namespace

std::int64_t checked_multiply(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t product = 0;
  check<ShapeError>(!__builtin_mul_overflow(a, b, &product),
                    "[shape] {} must fit in 63 bits: {} * {}", what, a, b);
  return product;
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::vector<std::int64_t>(sizes)) {}

Shape::Shape(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {
  // A zero anywhere makes the count zero, but the other sizes must still be representable: views
  // and reductions drop axes.
  std::int64_t without_zeros = 1;
  bool zero = false;
  // `if (...) fail` instead of check(): shapes are made all the time, their text hardly ever.
  for (const auto size : sizes_) {
    if (size < 0) fail<ShapeError>("[shape] sizes must not be negative: {}", joined(sizes_));
    if (size == 0) {
      zero = true;
      continue;
    }
    if (__builtin_mul_overflow(without_zeros, size, &without_zeros))
      fail<ShapeError>("[shape] the number of elements must fit in 63 bits: {}", joined(sizes_));
  }
  numel_ = zero ? 0 : without_zeros;
}

std::string Shape::to_string() const { return joined(sizes_); }

Strides contiguous_strides(const Shape& shape) {
  Strides strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t step = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape.sizes()[i], 1);
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  if (shape.numel() <= 1) return true;
  std::int64_t step = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    const auto size = shape.sizes()[i];
    if (size == 1) continue;
    if (strides[i] != step) return false;
    step *= size;
  }
  return true;
}

std::int64_t normalize_axis(std::int64_t axis, std::int64_t rank, const char* op) {
  const auto positive = axis < 0 ? axis + rank : axis;
  check<ShapeError>(positive >= 0 && positive < rank,
                    "[{}] the axis must be in [{}, {}) for rank {}: {}", op, -rank, rank, rank,
                    axis);
  return positive;
}

}  // namespace netcl
