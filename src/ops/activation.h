// The activations that products and convolutions apply to a result while it is at hand, in the
// numbers of ops::Activation; the kernels' counterpart is conv2d/epilogue.cl.
#pragma once

#include <cmath>
#include <type_traits>

#include "netcl/ops.h"
#include "ops/op.h"

namespace netcl {

template <class V>
V activate(int activation, V x) {
  if constexpr (!std::is_floating_point_v<V>) {
    return activation == 1 && x < 0 ? V{0} : x;
  } else {
    switch (static_cast<ops::Activation>(activation)) {
      case ops::Activation::relu:
        return x <= V(0) ? V(0) : x;
      case ops::Activation::gelu:
        return V(0.5) * x * std::erfc(-x * V(0.70710678118654752440));
      case ops::Activation::silu:
        return x / (V(1) + std::exp(-x));
      case ops::Activation::sigmoid:
        return V(1) / (V(1) + std::exp(-x));
      case ops::Activation::tanh:
        return std::tanh(x);
      default:
        return x;
    }
  }
}

// "relu" and so on; null for none. The element-wise op of the same meaning.
const char* activation_op(int activation);

// dy times the derivative at z, whose activation is y.
Tensor activation_gradient(int activation, const Tensor& z, const Tensor& y, const Tensor& dy,
                           bool differentiable);
// Whether that derivative follows from y alone.
bool gradient_needs_input(int activation);

// Input 3 of products and convolutions, where there is one: added to the result before the
// activation, of exactly its shape.
void check_residual(const OpSpec& spec, const Shape& result);

// What the gradients of activation(product of inputs 0 and 1, plus inputs 2 and 3) read.
SavedTensors saved_by_product(const std::vector<bool>& wanted, const Attributes& attributes);
// Of a product, each factor is what the gradient of the other needs.
inline std::uint32_t other_factor(const std::vector<bool>& wanted) {
  return (wanted[1] ? 1u : 0u) | (wanted[0] ? 2u : 0u);
}

// The gradient of activation(z) from that of its result; `z` is made when it is needed.
template <class MakeInput>
Tensor activation_backward(int activation, const OpGradient& g, MakeInput&& z) {
  if (activation == 0) return g.dy();
  const auto& y = g.outputs[0];
  return activation_gradient(activation, gradient_needs_input(activation) ? z() : y, y, g.dy(),
                             g.differentiable);
}

}  // namespace netcl
