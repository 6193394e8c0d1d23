// Clipping, averages of weights, loss scaling.
#include <cmath>

#include "base/check.h"
#include "netcl/autograd.h"
#include "netcl/optim.h"
#include "optim/multi_tensor.h"

namespace netcl::optim {
namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> result;
  for (const auto& parameter : parameters)
    if (const auto gradient = parameter.grad()) result.push_back(gradient);
  return result;
}

// Of all elements together, in float32 (float64 where a gradient is).
Tensor total_norm(const std::vector<Tensor>& gradients) {
  Tensor sum;
  for (const auto& gradient : gradients) {
    const auto dtype = accumulator_dtype(gradient.dtype());
    const auto part = ops::sum(ops::square(gradient.astype(dtype)));
    sum = sum ? sum + part : part;
  }
  return ops::sqrt(sum);
}

}  // namespace

Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  check<ArgumentError>(max_norm > 0, "[clip_grad_norm] max_norm must be positive: {}", max_norm);
  const no_grad off;
  const auto gradients = gradients_of(parameters);
  check<ArgumentError>(!gradients.empty(), "[clip_grad_norm] no parameter has a gradient");
  const auto norm = total_norm(gradients);
  const auto factor =
      ops::where(ops::isfinite(norm), ops::minimum(max_norm / (norm + 1e-6), 1.0), 1.0);
  for (const auto& gradient : gradients) ops::mul_(gradient, factor.astype(gradient.dtype()));
  return norm;
}

void clip_grad_value(const std::vector<Tensor>& parameters, double limit) {
  check<ArgumentError>(limit > 0, "[clip_grad_value] the limit must be positive: {}", limit);
  const no_grad off;
  for (const auto& gradient : gradients_of(parameters)) ops::clamp_(gradient, -limit, limit);
}

// ---- EMA

EMA::EMA(const nn::Module& model, double decay) : decay_(decay) {
  check<ArgumentError>(decay >= 0 && decay < 1, "[EMA] the decay must be in [0, 1): {}", decay);
  parameters_ = model.state_dict().size() - model.named_buffers().size();
  for (const auto& one : model.state_dict())
    averages_.push_back({one.name, one.tensor.detach().clone()});
}

void EMA::update(const nn::Module& model) {
  const no_grad off;
  const auto state = model.state_dict();
  check<ArgumentError>(state.size() == averages_.size(), "[EMA] the model must have {} tensors: {}",
                       averages_.size(), state.size());
  ++updates_;
  const auto n = static_cast<double>(updates_);
  const auto decay = std::min(decay_, (1 + n) / (10 + n));
  std::vector<Update> updates;
  for (std::size_t i = 0; i < parameters_; ++i)
    updates.push_back({averages_[i].tensor, state[i].tensor.detach(), {}, {}});
  update_tensors(UpdateRule::average, {1 - decay}, updates);
  for (auto i = parameters_; i < state.size(); ++i) averages_[i].tensor.copy_from(state[i].tensor);
}

void EMA::copy_to(nn::Module& model) const { model.load_state_dict(averages_); }

// ---- GradScaler

GradScaler::GradScaler(double scale, std::int64_t interval) : scale_(scale), interval_(interval) {
  check<ArgumentError>(scale > 0, "[GradScaler] the scale must be positive: {}", scale);
  check<ArgumentError>(interval > 0, "[GradScaler] the interval must be positive: {}", interval);
}

Tensor GradScaler::scale_loss(const Tensor& loss) const { return loss * scale_; }

bool GradScaler::step(Optimizer& optimizer) {
  const no_grad off;
  const auto gradients = gradients_of(optimizer.parameters());
  if (gradients.empty()) return false;
  const bool finite = std::isfinite(total_norm(gradients).item());
  if (!finite) {
    scale_ = std::max(scale_ * 0.5, 1.0);
    good_ = 0;
    return false;
  }
  for (const auto& gradient : gradients) ops::mul_(gradient, 1 / scale_);
  optimizer.step();
  if (++good_ >= interval_) {
    scale_ = std::min(scale_ * 2, 0x1p24);
    good_ = 0;
  }
  return true;
}

}  // namespace netcl::optim
