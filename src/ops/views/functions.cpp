// The public functions of the view ops, cast and fill_.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "tensor/access.h"
#include "tensor/convert.h"
#include "tensor/following.h"

namespace netcl::ops {

Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes) {
  return apply("reshape", {x}, {{"sizes", sizes}});
}

Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) {
  return apply("transpose", {x}, {{"a", a}, {"b", b}});
}

Tensor permute(const Tensor& x, const Axes& axes) {
  return apply("permute", {x}, {{"axes", axes}});
}

Tensor expand(const Tensor& x, const Shape& shape) {
  return apply("expand", {x}, {{"shape", shape.sizes()}});
}

Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  return apply("narrow", {x}, {{"axis", axis}, {"start", start}, {"length", length}});
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes,
                          std::int64_t axis) {
  check<ArgumentError>(static_cast<bool>(x), "[split] the tensor must not be empty (default-made)");
  const auto at = normalize_axis(axis, x.ndim(), "split");
  std::int64_t left = x.shape()[at];
  bool fits = true;
  for (const auto size : sizes) {
    fits = fits && size >= 0 && size <= left;
    if (fits) left -= size;
  }
  if (!fits || left != 0)
    fail<ShapeError>("[split] the sizes must add up to the {} elements of axis {}: ({})",
                     x.shape()[at], axis, join(sizes, ", "));
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const auto size : sizes) {
    parts.push_back(narrow(x, at, start, size));
    start += size;
  }
  return parts;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x && x.dtype() == dtype) return x;
  return apply("cast", {x}, {{"dtype", std::string(name_of(dtype))}});
}

const Tensor& fill_(const Tensor& x, double value) {
  check<ArgumentError>(static_cast<bool>(x), "[fill_] the tensor must not be empty (default-made)");
  if (x.numel() == 0) return x;
  before_write("fill_", x);
  if (!x.is_contiguous())
    return x.copy_from(Tensor::full(x.queue(), {}, value, x.dtype()).expand(x.shape()));
  visit_dtype(x.dtype(), [&]<class T>(T) {
    const T element = convert_element<T>(value);
    with_backend(x.queue(), [&](DeviceBackend& backend) {
      const auto start = static_cast<std::size_t>(x.offset()) * sizeof element;
      backend.fill(TensorAccess::view(x).array, start, x.nbytes(), &element, sizeof element);
    });
  });
  return x;
}

}  // namespace netcl::ops
