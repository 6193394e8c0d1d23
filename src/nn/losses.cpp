#include "nn/support.h"

namespace netcl::nn {
namespace {

Tensor reduced(const Tensor& losses, Reduction how) {
  switch (how) {
    case Reduction::mean:
      return ops::mean(losses);
    case Reduction::sum:
      return ops::sum(losses);
    default:
      return losses;
  }
}

}  // namespace

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction how) {
  return reduced(ops::square(prediction - target), how);
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction how) {
  return reduced(ops::abs(prediction - target), how);
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta, Reduction how) {
  check<ArgumentError>(beta >= 0, "[smooth_l1_loss] beta must not be negative: {}", beta);
  if (beta == 0) return l1_loss(prediction, target, how);
  return huber_loss(prediction, target, beta, how) / beta;
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta, Reduction how) {
  check<ArgumentError>(delta > 0, "[huber_loss] delta must be positive: {}", delta);
  const auto distance = ops::abs(prediction - target);
  // delta * d - delta^2 / 2 where d is large, d^2 / 2 where it is small
  const auto near = ops::minimum(distance, delta);
  return reduced(near * (distance - near * 0.5), how);
}

// -(w t log(s(x)) + (1 - t) log(1 - s(x))), both logarithms as softplus: nothing overflows.
Tensor bce_with_logits_loss(const Tensor& logits, const Tensor& target, double positive_weight,
                            Reduction how) {
  check<ArgumentError>(positive_weight > 0,
                       "[bce_with_logits_loss] the weight must be positive: {}", positive_weight);
  if (positive_weight == 1) return reduced(ops::softplus(logits) - logits * target, how);
  return reduced(
      target * ops::softplus(-logits) * positive_weight + (1.0 - target) * ops::softplus(logits),
      how);
}

// The logarithms are cut at -100, so that a certain and wrong prediction has a finite loss.
Tensor bce_loss(const Tensor& probability, const Tensor& target, Reduction how) {
  const auto log_of = [](const Tensor& x) { return ops::maximum(ops::log(x), -100.0); };
  return reduced(-(target * log_of(probability) + (1.0 - target) * log_of(1.0 - probability)), how);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels, Reduction how) {
  check<ShapeError>(log_probabilities.ndim() == 2 && labels.ndim() == 1 &&
                        labels.size(0) == log_probabilities.size(0),
                    "[nll_loss] the inputs must be (N, classes) and (N): {} and {}",
                    log_probabilities.shape().to_string(), labels.shape().to_string());
  const auto picked = ops::gather(log_probabilities, 1, labels.unsqueeze(1));
  return reduced(-ops::reshape(picked, {labels.size(0)}), how);
}

Tensor kl_div_loss(const Tensor& log_probabilities, const Tensor& target, Reduction how) {
  // 0 log(0) counts as 0.
  const auto safe = ops::where(ops::gt(target, 0.0), target, 1.0);
  return reduced(target * (ops::log(safe) - log_probabilities), how);
}

Tensor hinge_loss(const Tensor& prediction, const Tensor& sign, Reduction how) {
  return reduced(ops::relu(1.0 - prediction * sign), how);
}

}  // namespace netcl::nn
