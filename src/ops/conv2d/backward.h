// The gradients of conv2d as ops of their own, and how they are called.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl {

namespace conv {

// dx of the size H, W.
Tensor backward_data(const Tensor& dy, const Tensor& w, ops::Pair size,
                     const Attributes& attributes);
// dw with filters of R, S.
Tensor backward_weights(const Tensor& x, const Tensor& dy, ops::Pair filter,
                        const Attributes& attributes);
// conv2d without bias, its result cut to the size P, Q.
Tensor forward_cut(const Tensor& x, const Tensor& w, ops::Pair size, const Attributes& attributes);

// The gradient of a bias: the sum over all axes but the channels'.
Tensor channel_sums(const Tensor& dy);

OpDef backward_data_op();
OpDef backward_weights_op();

// For filters of this shape.
Tolerance conv_tolerance(const Shape& w);
// Of sums of `terms` products, in place of those of a filter (R, S).
Tolerance conv_tolerance(std::int64_t terms, std::int64_t R, std::int64_t S);
extern const char* const kConvToleranceReason;

}  // namespace conv
}  // namespace netcl
