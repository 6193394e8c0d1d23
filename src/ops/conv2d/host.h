// Convolution and its gradients on the CPU backend, for every dtype and geometry.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl::conv {

// y = activation(conv(x, w) + b + residual); b and the residual may be empty.
void host_forward(const ConvSizes& s, const Tensor& x, const Tensor& w, const Tensor& b,
                  const Tensor& residual, const Tensor& y, ops::Activation activation);
// dx, plus a bias per channel of dx where b is given.
void host_backward_data(const ConvSizes& s, const Tensor& dy, const Tensor& w, const Tensor& b,
                        const Tensor& dx);
void host_backward_weights(const ConvSizes& s, const Tensor& x, const Tensor& dy, const Tensor& dw);

}  // namespace netcl::conv
