// Normalisations.
#include "netcl/autograd.h"
#include "nn/support.h"

namespace netcl::nn {

// ---- BatchNorm

BatchNorm::BatchNorm(std::int64_t channels, double epsilon, double rate)
    : eps(epsilon), momentum(rate) {
  check_positive("BatchNorm", "channels", channels);
  check<ArgumentError>(eps > 0, "[BatchNorm] eps must be positive: {}", eps);
  check<ArgumentError>(momentum >= 0 && momentum <= 1, "[BatchNorm] momentum must be in [0, 1]: {}",
                       momentum);
  weight = Tensor::full({channels}, 1);
  bias = new_tensor({channels});
  running_mean = new_tensor({channels});
  running_var = Tensor::full({channels}, 1);
  add_parameter("weight", weight);
  add_parameter("bias", bias);
  add_buffer("running_mean", running_mean);
  add_buffer("running_var", running_var);
}

Config BatchNorm::config() const {
  return {{"channels", weight.size(0)}, {"eps", eps}, {"momentum", momentum}};
}

Tensor BatchNorm::forward(const Tensor& x) {
  check_input(x);
  if (!is_training()) return ops::batch_norm(x, weight, bias, running_mean, running_var, eps);
  const auto result = ops::batch_norm_train(x, weight, bias, eps);
  const no_grad off;
  const auto n = static_cast<double>(x.numel()) / static_cast<double>(weight.numel());
  check<ShapeError>(n > 1, "[{}] training needs more than one value per channel: {}", type(),
                    x.shape().to_string());
  const auto variance = ops::reciprocal(ops::square(result.inverse_deviation)) - eps;
  running_mean.copy_from(running_mean * (1 - momentum) + result.mean * momentum);
  running_var.copy_from(running_var * (1 - momentum) + variance * (momentum * n / (n - 1)));
  return result.y;
}

void BatchNorm1d::check_input(const Tensor& x) const {
  check<ShapeError>((x.ndim() == 2 || x.ndim() == 3) && x.size(1) == weight.size(0),
                    "[BatchNorm1d] the input must be (N, {0}) or (N, {0}, L): {1}", weight.size(0),
                    x.shape().to_string());
}

void BatchNorm2d::check_input(const Tensor& x) const {
  check<ShapeError>(x.ndim() == 4 && x.size(1) == weight.size(0),
                    "[BatchNorm2d] the input must be (N, {}, H, W): {}", weight.size(0),
                    x.shape().to_string());
}

// ---- the others

LayerNorm::LayerNorm(std::vector<std::int64_t> shape, double epsilon) : eps(epsilon) {
  check<ArgumentError>(!shape.empty(), "[LayerNorm] the shape must have at least one axis");
  weight = Tensor::full(Shape(shape), 1);
  bias = new_tensor(Shape(shape));
  add_parameter("weight", weight);
  add_parameter("bias", bias);
}
Config LayerNorm::config() const { return {{"shape", weight.shape().sizes()}, {"eps", eps}}; }
Tensor LayerNorm::forward(const Tensor& x) { return ops::layer_norm(x, weight, bias, eps); }

RMSNorm::RMSNorm(std::int64_t size, double epsilon) : eps(epsilon) {
  check_positive("RMSNorm", "size", size);
  weight = Tensor::full({size}, 1);
  add_parameter("weight", weight);
}
Config RMSNorm::config() const { return {{"size", weight.size(0)}, {"eps", eps}}; }
Tensor RMSNorm::forward(const Tensor& x) { return ops::rms_norm(x, weight, eps); }

GroupNorm::GroupNorm(std::int64_t count, std::int64_t channels, double epsilon)
    : groups(count), eps(epsilon) {
  check_positive("GroupNorm", "groups", groups);
  check_positive("GroupNorm", "channels", channels);
  check<ArgumentError>(channels % groups == 0,
                       "[GroupNorm] groups must divide the channels: {} of {}", groups, channels);
  weight = Tensor::full({channels}, 1);
  bias = new_tensor({channels});
  add_parameter("weight", weight);
  add_parameter("bias", bias);
}
Config GroupNorm::config() const {
  return {{"groups", groups}, {"channels", weight.size(0)}, {"eps", eps}};
}
Tensor GroupNorm::forward(const Tensor& x) { return ops::group_norm(x, groups, weight, bias, eps); }

}  // namespace netcl::nn
