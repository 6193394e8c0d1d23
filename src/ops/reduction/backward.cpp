// The gradients of the reductions, written with other ops.
#include <limits>

#include "netcl/ops.h"
#include "ops/reduction/reduction.h"

namespace netcl {
namespace {

using Axes = std::vector<std::int64_t>;

// A gradient or a result, with the reduced axes back as size 1: broadcasts against x.
Tensor kept(const Tensor& tensor, const Shape& shape, const Axes& axes) {
  return tensor.reshape(reduced_shape(shape, axes, true).sizes());
}

// To the elements that are the result, in equal shares.
Tensor extreme_gradient(const Tensor& x, const Tensor& y, const Tensor& dy, const Axes& axes) {
  const auto mask = ops::eq(x, y).astype(dy.dtype());
  return ops::mul(mask, ops::div(dy, ops::sum(mask, axes, true)));
}

// The product of the others: with one zero only that one has a gradient, with two none has.
Tensor product_gradient(const Tensor& x, const Tensor& dy, const Axes& axes) {
  const auto is_zero = ops::eq(x, 0.0);
  const auto zeros = ops::sum(is_zero.astype(dy.dtype()), axes, true);
  const auto product = ops::prod(ops::where(is_zero, 1.0, x), axes, true);
  const auto others = ops::where(ops::eq(zeros, 0.0), ops::div(product, x), 0.0);
  const auto of_zero = ops::where(ops::eq(zeros, 1.0), product, 0.0);
  return ops::mul(dy, ops::where(is_zero, of_zero, others));
}

Tensor variance_gradient(const Tensor& x, const Tensor& dy, const Axes& axes, double correction) {
  const auto n = static_cast<double>(plan_reduction(x.shape(), axes).reduced);
  const auto deviation = ops::sub(x, ops::mean(x, axes, true));
  return ops::mul(ops::mul(dy, 2 / std::max(n - correction, 0.0)), deviation);
}

// exp(x - y); of a row of nothing but -inf it is 0.
Tensor logsumexp_gradient(const Tensor& x, const Tensor& y, const Tensor& dy) {
  const auto lowest = -std::numeric_limits<double>::infinity();
  return ops::mul(dy, ops::exp(ops::sub(x, ops::where(ops::eq(y, lowest), 0.0, y))));
}

}  // namespace

std::vector<Tensor> reduction_backward(const ReductionInfo& info, const OpGradient& gradient) {
  if (!gradient.wants(0) || !gradient.dy()) return {Tensor()};
  const auto& x = gradient.inputs[0];
  const auto axes = reduced_axes(info, gradient.attributes, x.ndim());
  const auto dy = kept(gradient.dy(), x.shape(), axes);
  const auto y = kept(gradient.outputs[0], x.shape(), axes);
  switch (info.kind) {
    case ReductionKind::sum:
      return {dy.expand(x.shape())};
    case ReductionKind::mean: {
      const auto n = static_cast<double>(plan_reduction(x.shape(), axes).reduced);
      return {ops::div(dy, n).expand(x.shape())};
    }
    case ReductionKind::prod:
      return {product_gradient(x, dy, axes)};
    case ReductionKind::var:
      return {variance_gradient(x, dy, axes, gradient.attributes.number("correction"))};
    case ReductionKind::logsumexp:
      return {logsumexp_gradient(x, y, dy)};
    default:
      return {extreme_gradient(x, y, dy, axes)};
  }
}

}  // namespace netcl
