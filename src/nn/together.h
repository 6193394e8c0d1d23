// Layers that follow each other and are computed as one op: a product or a convolution, the batch
// norm behind it in evaluation, an activation. Or in another order: see `pool`.
#pragma once

#include "netcl/nn.h"

namespace netcl::nn {

struct LayersTogether {
  std::size_t count = 0;  // of layers; 0: there is nothing to be put together
  const Conv2d* conv = nullptr;
  const Linear* linear = nullptr;
  // A relu before it is computed behind it, of fewer elements: the largest of a window stays the
  // largest, and where it is not positive no gradient passes either way. Only worth it when a tape
  // wants the gradients; else the relu is free in the convolution.
  const MaxPool2d* pool = nullptr;
  std::vector<Tensor> folded;  // filters and bias with the norm in them; empty: the layer's own
  ops::Activation activation = ops::Activation::none;

  explicit operator bool() const { return count > 0; }
  // activation(layers(x) + residual)
  Tensor forward(const Tensor& x, const Tensor& residual = {}) const;
};

using Layers = std::vector<std::pair<std::string, ModulePtr>>;
// The longest run that begins at layers[first]: of two layers at least.
LayersTogether layers_together(const Layers& layers, std::size_t first);

// The first `count` layers one after the other; errors say in which layer they came up.
Tensor forward_layers(const Layers& layers, std::size_t count, const Tensor& x);

}  // namespace netcl::nn
