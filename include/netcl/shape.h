// Shapes and strides: 64-bit sizes of any rank, checked for overflow where they are made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace netcl {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  explicit Shape(std::vector<std::int64_t> sizes);  // throws ShapeError on negative sizes, overflow

  std::int64_t rank() const { return static_cast<std::int64_t>(sizes_.size()); }
  std::int64_t numel() const { return numel_; }
  std::int64_t operator[](std::int64_t axis) const {
    return sizes_[static_cast<std::size_t>(axis)];
  }
  bool empty() const { return sizes_.empty(); }  // rank 0; a zero-size shape has numel() == 0
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.end(); }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  std::string to_string() const;  // "(2, 3)", "(4,)", "()"
  bool operator==(const Shape& other) const { return sizes_ == other.sizes_; }

 private:
  std::vector<std::int64_t> sizes_;
  std::int64_t numel_ = 1;
};

// In elements; negative and zero strides are views (reversed and expanded axes).
using Strides = std::vector<std::int64_t>;

Strides contiguous_strides(const Shape& shape);
bool is_contiguous(const Shape& shape, const Strides& strides);
// Turns -1 into the last axis and so on; ShapeError when out of range.
std::int64_t normalize_axis(std::int64_t axis, std::int64_t rank, const char* op);
// a * b, or ShapeError naming `what` when it does not fit 63 bits.
std::int64_t checked_multiply(std::int64_t a, std::int64_t b, const char* what);

}  // namespace netcl
