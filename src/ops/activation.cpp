#include "ops/activation.h"

#include "base/check.h"
#include "ops/registry.h"

namespace netcl {

const char* activation_op(int activation) {
  constexpr const char* kOps[] = {nullptr, "relu", "gelu", "silu", "sigmoid", "tanh"};
  check<ArgumentError>(activation >= 0 && activation < static_cast<int>(std::size(kOps)),
                       "[activation] it must be one of none, relu, gelu, silu, sigmoid, tanh: {}",
                       activation);
  return kOps[activation];
}

// relu: y > 0 exactly where z > 0. sigmoid, tanh: written in y.
bool gradient_needs_input(int activation) {
  const auto which = static_cast<ops::Activation>(activation);
  return which == ops::Activation::gelu || which == ops::Activation::silu;
}

Tensor activation_gradient(int activation, const Tensor& z, const Tensor& y, const Tensor& dy,
                           bool differentiable) {
  const auto& op = find_op(activation_op(activation));
  return op.backward({{z}, {}, {y}, {dy}, {true}, differentiable})[0];
}

void check_residual(const OpSpec& spec, const Shape& result) {
  if (spec.has(3) && !(spec.shape(3) == result))
    fail<ShapeError>("[{}] the residual must have the result's shape, {}: {}", spec.op.name,
                     result.to_string(), spec.shape(3).to_string());
}

SavedTensors saved_by_product(const std::vector<bool>& wanted, const Attributes& attributes) {
  const auto activation = static_cast<int>(attributes.integer("activation"));
  if (activation == 0) return {other_factor(wanted), 0};
  return {gradient_needs_input(activation) ? 15u : other_factor(wanted), 1};
}

}  // namespace netcl
