#include "ops/matmul/plan.h"

#include "base/check.h"
#include "ops/elementwise/broadcast.h"

namespace netcl {
namespace {

Shape without_last(const Shape& shape, std::int64_t count) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - count));
}

// A vector is a matrix of one row (on the left) or one column.
Tensor as_matrix(const Tensor& tensor, std::int64_t axis) {
  return tensor.ndim() == 1 ? tensor.unsqueeze(axis) : tensor;
}

Strides batch_strides(const Tensor& matrix, const Shape& batch) {
  const Strides own(matrix.strides().begin(), matrix.strides().end() - 2);
  return broadcast_strides(without_last(matrix.shape(), 2), own, batch);
}

MatmulSide side_of(const Tensor& matrix) {
  const auto& strides = matrix.strides();
  return {matrix, strides[strides.size() - 2], strides[strides.size() - 1], 0, 0};
}

// Rows of all batches follow each other at one stride, and there is one right factor: more rows.
bool rows_continue(const Tensor& a, const Tensor& y) {
  const auto merged = [](const Tensor& tensor) {
    const auto rank = tensor.ndim();
    for (std::int64_t i = 0; i + 2 < rank; ++i)
      if (tensor.shape()[i] != 1 &&
          tensor.strides()[static_cast<std::size_t>(i)] !=
              tensor.strides()[static_cast<std::size_t>(i) + 1] * tensor.shape()[i + 1])
        return false;
    return true;
  };
  return merged(a) && merged(y);
}

Tensor collapse(const Tensor& tensor) {
  const auto rank = tensor.ndim();
  const auto columns = tensor.shape()[rank - 1];
  return tensor.view(Shape{columns == 0 ? 0 : tensor.numel() / columns, columns});
}

void set_batches(MatmulPlan& plan, const Shape& batch) {
  auto loops = plan_broadcast(
      batch, {batch_strides(plan.a.tensor, batch), batch_strides(plan.b.tensor, batch),
              batch_strides(plan.y.tensor, batch)});
  const auto rank = loops.sizes.size();
  MatmulSide* sides[] = {&plan.a, &plan.b, &plan.y};
  if (rank > 0) plan.inner = loops.sizes[rank - 1];
  if (rank > 1) plan.outer = loops.sizes[rank - 2];
  for (std::size_t k = 0; k < 3; ++k) {
    if (rank > 0) sides[k]->inner = loops.strides[k][rank - 1];
    if (rank > 1) sides[k]->outer = loops.strides[k][rank - 2];
  }
}

std::size_t batch_axes(const Tensor& a, const Tensor& b, const Tensor& y, const Shape& batch) {
  return plan_broadcast(batch,
                        {batch_strides(a, batch), batch_strides(b, batch), batch_strides(y, batch)})
      .sizes.size();
}

Tensor all_batches(const Tensor& matrix, const Shape& batch) {
  auto sizes = batch.sizes();
  sizes.push_back(matrix.size(-2));
  sizes.push_back(matrix.size(-1));
  return matrix.expand(Shape(sizes)).contiguous();
}

}  // namespace

Shape matmul_shape(std::string_view op, const Shape& a, const Shape& b) {
  if (a.rank() < 1 || b.rank() < 1)
    fail<ShapeError>("[{}] the factors must have at least one axis: {} and {}", op, a.to_string(),
                     b.to_string());
  const auto K = a[a.rank() - 1], other = b.rank() == 1 ? b[0] : b[b.rank() - 2];
  if (K != other)
    fail<ShapeError>("[{}] the inner sizes must be equal: {} and {} of {} x {}", op, K, other,
                     a.to_string(), b.to_string());
  const auto batch = broadcast_shapes(op, without_last(a, std::min<std::int64_t>(a.rank(), 2)),
                                      without_last(b, std::min<std::int64_t>(b.rank(), 2)));
  auto sizes = batch.sizes();
  if (a.rank() > 1) sizes.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) sizes.push_back(b[b.rank() - 1]);
  return Shape(std::move(sizes));
}

MatmulPlan plan_matmul(const Tensor& a, const Tensor& b, const Tensor& y) {
  auto left = as_matrix(a, 0), right = as_matrix(b, 1), result = y;
  if (b.ndim() == 1) result = result.unsqueeze(-1);
  if (a.ndim() == 1) result = result.unsqueeze(-2);
  if (right.ndim() == 2 && left.ndim() > 2 && rows_continue(left, result) && left.size(-1) > 0 &&
      result.size(-1) > 0 && left.is_contiguous() && result.is_contiguous()) {
    left = collapse(left);
    result = collapse(result);
  }
  const auto batch = without_last(result.shape(), 2);
  if (batch_axes(left, right, result, batch) > 2) {
    left = all_batches(left, batch);
    right = all_batches(right, batch);
  }
  MatmulPlan plan;
  plan.M = result.size(-2);
  plan.N = result.size(-1);
  plan.K = left.size(-1);
  plan.a = side_of(left);
  plan.b = side_of(right);
  plan.y = side_of(result);
  set_batches(plan, batch);
  return plan;
}

MatmulPlan plan_linear(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                       int activation, const Tensor& y) {
  auto plan = plan_matmul(x, w.transpose(), y);
  plan.bias = bias;
  plan.residual = residual;
  plan.activation = activation;
  return plan;
}

}  // namespace netcl
