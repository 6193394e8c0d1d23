// A matrix product as the kernels see it: sizes, strides and at most two batch axes.
#pragma once

#include "ops/kernels.h"
#include "ops/op.h"
#include "ops/panels.h"

namespace netcl {

// One of the three matrices: a tensor with its strides, in elements.
struct MatmulSide {
  Tensor tensor;
  std::int64_t row = 0, column = 0;   // strides
  std::int64_t outer = 0, inner = 0;  // batch strides; 0 where the batches share a matrix
};

struct MatmulPlan {
  std::int64_t M = 1, N = 1, K = 1;
  std::int64_t outer = 1, inner = 1;  // batches
  MatmulSide a, b, y;
  Tensor bias;      // of length N, or empty
  Tensor residual;  // of the result's shape, or empty; may be a view, unlike y
  int activation = 0;

  // The residual, laid out as y. A view is copied: where it is read, a plan being made more often.
  Tensor dense_residual() const { return residual ? residual.contiguous() : residual; }
  std::int64_t batches() const { return outer * inner; }
  DType dtype() const { return y.tensor.dtype(); }
  // The three vectors of common.cl.
  Long8 sizes() const { return {{M, N, K, batches(), inner, 0, 0, 0}}; }
  Long8 factor_strides() const {
    return {{a.row, a.column, a.outer, a.inner, b.row, b.column, b.outer, b.inner}};
  }
  Long8 result_strides() const { return {{y.row, y.column, y.outer, y.inner, 0, 0, 0, 0}}; }
};

// The shape of a product; ShapeError when it has none.
Shape matmul_shape(std::string_view op, const Shape& a, const Shape& b);
// a b into y, tensors as given to the op "matmul". Factors whose batches need more than two axes
// are copied.
MatmulPlan plan_matmul(const Tensor& a, const Tensor& b, const Tensor& y);
// activation(x w^T + bias + residual) into y, which is contiguous.
MatmulPlan plan_linear(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                       int activation, const Tensor& y);

void host_matmul(const MatmulPlan& plan);
// With the panels of packed.cl, for CPUs; K is not 0.
void packed_product(const Queue& queue, const MatmulPlan& plan, const PanelTile& tile);
std::vector<OpVariant> matmul_variants(std::function<MatmulPlan(const OpCall&)> plan);

}  // namespace netcl
