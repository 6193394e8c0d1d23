// The gradients of the reductions.
#include "netcl/ops.h"
#include "ops/reduction/reduction.h"

namespace netcl {
namespace {

// A gradient or a result, with the reduced axes back as size 1: broadcasts against x.
Tensor kept(const Tensor& tensor, const Shape& shape, const std::vector<std::int64_t>& axes) {
  return tensor.reshape(reduced_shape(shape, axes, true).sizes());
}

}  // namespace

std::vector<Tensor> reduction_backward(const ReductionInfo& info, const OpGradient& gradient) {
  if (!gradient.wants(0) || !gradient.dy()) return {Tensor()};
  const auto& x = gradient.inputs[0];
  const auto axes = reduced_axes(info, gradient.attributes, x.ndim());
  const auto dy = kept(gradient.dy(), x.shape(), axes);
  return {dy.expand(x.shape())};
}

}  // namespace netcl
