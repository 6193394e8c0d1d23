// Views: new shapes and strides over the same storage.
#include <algorithm>

#include "base/check.h"
#include "tensor/following.h"

namespace netcl {
namespace {

std::string text_of(const std::vector<std::int64_t>& values) {
  return fmt::format("({})", join(values, ", "));
}

// Replaces the one -1 by what the number of elements asks for.
Shape completed(const std::vector<std::int64_t>& sizes, const Shape& from) {
  auto result = sizes;
  std::int64_t known = 1;
  std::int64_t* missing = nullptr;
  for (auto& size : result) {
    check<ShapeError>(size >= -1, "[reshape] sizes must be at least -1: {}", text_of(sizes));
    if (size != -1) {
      known = checked_multiply(known, size, "the number of elements");
      continue;
    }
    check<ShapeError>(missing == nullptr, "[reshape] at most one size may be -1: {}",
                      text_of(sizes));
    missing = &size;
  }
  if (missing != nullptr) {
    check<ShapeError>(known != 0 && from.numel() % known == 0,
                      "[reshape] the -1 must have one solution: {} to {}", from.to_string(),
                      text_of(sizes));
    *missing = from.numel() / known;
  }
  return Shape(std::move(result));
}

// The strides that give `to` over the same elements without moving any, if there are such: runs of
// old axes that one stride serves are split into new axes.
bool viewed_strides(const Shape& from, const Strides& strides, const Shape& to, Strides& result) {
  result = contiguous_strides(to);
  if (from.numel() <= 1 || is_contiguous(from, strides)) return true;
  auto next = to.rank() - 1;
  auto axis = from.rank() - 1;
  while (axis >= 0) {
    if (from[axis] == 1) {  // its stride means nothing
      --axis;
      continue;
    }
    const auto step = strides[static_cast<std::size_t>(axis)];
    auto run = from[axis--];
    for (; axis >= 0; --axis) {
      if (from[axis] == 1) continue;
      if (strides[static_cast<std::size_t>(axis)] != run * step) break;
      run *= from[axis];
    }
    std::int64_t covered = 1;
    for (; next >= 0 && covered < run; covered *= to[next--])
      result[static_cast<std::size_t>(next)] = covered * step;
    if (covered != run) return false;
  }
  return true;
}

}  // namespace

std::int64_t Tensor::size(std::int64_t axis) const {
  return shape_[normalize_axis(axis, ndim(), "size")];
}

Tensor Tensor::with_view(Shape shape, Strides strides, std::int64_t offset) const {
  return Tensor(storage_, queue_, std::move(shape), std::move(strides), offset, dtype_);
}

Tensor Tensor::view(const Shape& shape) const {
  require("view");
  check<ShapeError>(shape.numel() == numel(),
                    "[view] the number of elements must stay the same: {} to {}",
                    shape_.to_string(), shape.to_string());
  Strides strides;
  check<ShapeError>(viewed_strides(shape_, strides_, shape, strides),
                    "[view] the elements must lie so that no copy is needed: {} with strides {} "
                    "to {} (use reshape)",
                    shape_.to_string(), text_of(strides_), shape.to_string());
  return derived(*this, with_view(shape, std::move(strides), offset_), Derivation::reshape);
}

Tensor Tensor::reshape(const std::vector<std::int64_t>& sizes) const {
  require("reshape");
  const auto shape = completed(sizes, shape_);
  check<ShapeError>(shape.numel() == numel(),
                    "[reshape] the number of elements must stay the same: {} to {}",
                    shape_.to_string(), shape.to_string());
  Strides strides;
  if (viewed_strides(shape_, strides_, shape, strides))
    return derived(*this, with_view(shape, std::move(strides), offset_), Derivation::reshape);
  return clone().view(shape);
}

Tensor Tensor::permute(const std::vector<std::int64_t>& axes) const {
  require("permute");
  check<ShapeError>(static_cast<std::int64_t>(axes.size()) == ndim(),
                    "[permute] there must be one axis per dimension of {}: {}", shape_.to_string(),
                    text_of(axes));
  std::vector<std::int64_t> sizes;
  Strides strides;
  std::vector<bool> used(axes.size());
  for (const auto given : axes) {
    const auto axis = static_cast<std::size_t>(normalize_axis(given, ndim(), "permute"));
    check<ShapeError>(!used[axis], "[permute] every axis must come once: {}", text_of(axes));
    used[axis] = true;
    sizes.push_back(shape_.sizes()[axis]);
    strides.push_back(strides_[axis]);
  }
  return derived(*this, with_view(Shape(std::move(sizes)), std::move(strides), offset_),
                 Derivation::permute, axes);
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < ndim(); ++i) axes.push_back(i);
  std::swap(axes[static_cast<std::size_t>(normalize_axis(a, ndim(), "transpose"))],
            axes[static_cast<std::size_t>(normalize_axis(b, ndim(), "transpose"))]);
  return permute(axes);
}

Tensor Tensor::expand(const Shape& shape) const {
  require("expand");
  const auto extra = shape.rank() - ndim();
  check<ShapeError>(extra >= 0, "[expand] the rank must not shrink: {} to {}", shape_.to_string(),
                    shape.to_string());
  Strides strides(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t axis = 0; axis < ndim(); ++axis) {
    const auto size = shape_[axis];
    check<ShapeError>(size == shape[axis + extra] || size == 1,
                      "[expand] only axes of size 1 can repeat: {} to {}", shape_.to_string(),
                      shape.to_string());
    if (size == shape[axis + extra])
      strides[static_cast<std::size_t>(axis + extra)] = strides_[static_cast<std::size_t>(axis)];
  }
  return derived(*this, with_view(shape, std::move(strides), offset_), Derivation::expand);
}

Tensor Tensor::slice(std::int64_t axis, std::int64_t start, std::int64_t stop,
                     std::int64_t step) const {
  require("slice");
  check<ArgumentError>(step != 0 && step != INT64_MIN, "[slice] the step must not be 0: {}", step);
  const auto at = static_cast<std::size_t>(normalize_axis(axis, ndim(), "slice"));
  const auto size = shape_.sizes()[at];
  // Positions lie in [0, size] going up and in [-1, size - 1] going down, as in NumPy.
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto position = [&](std::int64_t value) {
    return std::clamp(value < 0 ? value + size : value, low, high);
  };
  const auto first = start == kBegin ? (step > 0 ? low : high) : position(start);
  const auto last = stop == kEnd ? (step > 0 ? high : low) : position(stop);
  const auto distance = step > 0 ? last - first : first - last;
  const auto magnitude = step > 0 ? step : -step;
  const auto count = distance <= 0 ? 0 : (distance - 1) / magnitude + 1;
  auto sizes = shape_.sizes();
  sizes[at] = count;
  auto strides = strides_;
  if (count > 1) strides[at] *= step;
  const auto offset = count > 0 ? offset_ + first * strides_[at] : offset_;
  return derived(*this, with_view(Shape(std::move(sizes)), std::move(strides), offset),
                 Derivation::slice, {{static_cast<std::int64_t>(at), first, step}});
}

Tensor Tensor::narrow(std::int64_t axis, std::int64_t start, std::int64_t length) const {
  require("narrow");
  const auto at = normalize_axis(axis, ndim(), "narrow");
  check<ShapeError>(
      start >= 0 && length >= 0 && start <= shape_[at] && length <= shape_[at] - start,
      "[narrow] [start, start + length) must be within [0, {}): start {}, length {}", shape_[at],
      start, length);
  return slice(at, start, start + length);
}

Tensor Tensor::select(std::int64_t axis, std::int64_t index) const {
  require("select");
  const auto at = normalize_axis(axis, ndim(), "select");
  const auto size = shape_[at];
  check<ShapeError>(index >= -size && index < size, "[select] the index must be in [{}, {}): {}",
                    -size, size, index);
  const auto position = index < 0 ? index + size : index;
  return narrow(at, position, 1).squeeze(at);
}

Tensor Tensor::squeeze(std::int64_t axis) const {
  require("squeeze");
  const auto at = normalize_axis(axis, ndim(), "squeeze");
  check<ShapeError>(shape_[at] == 1, "[squeeze] the axis {} must have size 1: shape {}", axis,
                    shape_.to_string());
  auto sizes = shape_.sizes();
  auto strides = strides_;
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  return derived(*this, with_view(Shape(std::move(sizes)), std::move(strides), offset_),
                 Derivation::reshape);
}

Tensor Tensor::unsqueeze(std::int64_t axis) const {
  require("unsqueeze");
  const auto at = normalize_axis(axis, ndim() + 1, "unsqueeze");
  auto sizes = shape_.sizes();
  auto strides = strides_;
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, 1);
  return derived(*this, with_view(Shape(std::move(sizes)), std::move(strides), offset_),
                 Derivation::reshape);
}

}  // namespace netcl
