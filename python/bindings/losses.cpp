// Losses.
#include "common.h"
#include "netcl/nn.h"

namespace netcl::python {
namespace {

ops::Reduction reduction_of(const std::string& name) {
  if (name == "mean") return ops::Reduction::mean;
  if (name == "sum") return ops::Reduction::sum;
  if (name == "none") return ops::Reduction::none;
  throw ArgumentError("[loss] the reduction must be mean, sum or none: " + name);
}

using Plain = Tensor (*)(const Tensor&, const Tensor&, ops::Reduction);
void def_plain(nb::module_& m, const char* name, Plain loss, const char* doc) {
  m.def(
      name,
      [loss](const Tensor& prediction, const Tensor& target, const std::string& reduction) {
        return loss(prediction, target, reduction_of(reduction));
      },
      "prediction"_a, "target"_a, "reduction"_a = "mean", unlocked(), doc);
}

using Weighted = Tensor (*)(const Tensor&, const Tensor&, double, ops::Reduction);
void def_weighted(nb::module_& m, const char* name, const char* weight, Weighted loss,
                  const char* doc) {
  m.def(
      name,
      [loss](const Tensor& prediction, const Tensor& target, double number,
             const std::string& reduction) {
        return loss(prediction, target, number, reduction_of(reduction));
      },
      "prediction"_a, "target"_a, nb::arg(weight) = 1.0, "reduction"_a = "mean", unlocked(), doc);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const std::string& reduction,
                     double label_smoothing, std::int64_t ignore_index) {
  if (is_floating(target.dtype()))
    return ops::cross_entropy_probabilities(logits, target, reduction_of(reduction));
  return ops::cross_entropy(logits, target, reduction_of(reduction), label_smoothing, ignore_index);
}

}  // namespace

void bind_losses(nb::module_& parent) {
  nb::module_ m = nb::borrow<nb::module_>(parent.attr("nn"));
  for (nb::module_ scope : {m, nb::borrow<nb::module_>(parent.attr("ops"))})
    scope.def(
        "cross_entropy", &cross_entropy, "logits"_a, "target"_a, "reduction"_a = "mean",
        "label_smoothing"_a = 0.0, "ignore_index"_a = -100, unlocked(),
        "logits (N, classes); target: labels (N), or probabilities (N, classes). Labels of "
        "ignore_index do\n"
        "not count.\n\n"
        ">>> f\"{nc.nn.cross_entropy(nc.Tensor([[0.0, 0.0]]), nc.Tensor([1])):.4f}\"\n'0.6931'\n");
  def_plain(m, "mse_loss", &nn::mse_loss, "The squares of the differences.");
  def_plain(m, "l1_loss", &nn::l1_loss, "The absolute differences.");
  def_plain(m, "bce_loss", &nn::bce_loss, "The binary cross entropy of probabilities.");
  def_plain(m, "nll_loss", &nn::nll_loss,
            "Minus the log probability of each label: log probabilities (N, classes), labels (N).");
  def_plain(m, "kl_div_loss", &nn::kl_div_loss,
            "target * (log(target) - prediction), where the prediction is log probabilities.");
  def_plain(m, "hinge_loss", &nn::hinge_loss, "max(0, 1 - prediction * target), targets -1 or 1.");
  def_weighted(m, "smooth_l1_loss", "beta", &nn::smooth_l1_loss,
               "Quadratic below beta, linear above: huber_loss / beta.");
  def_weighted(m, "huber_loss", "delta", &nn::huber_loss, "Quadratic below delta, linear above.");
  def_weighted(m, "bce_with_logits_loss", "positive_weight", &nn::bce_with_logits_loss,
               "The binary cross entropy of sigmoid(prediction); positive targets count "
               "positive_weight times.");
}

}  // namespace netcl::python
