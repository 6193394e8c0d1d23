#include "selftest/gradient.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/format.h"
#include "netcl/autograd.h"
#include "ops/dispatch.h"
#include "selftest/data.h"

namespace netcl::selftest_detail {
namespace {

constexpr std::size_t kProbes = 24;  // elements of an input that are moved

bool is_differentiable(const RefArray& input) {
  return input.present && input.dtype == DType::float64;
}

// sum(dy * y), the function whose derivatives are compared.
double weighted(const OpDef& op, const std::vector<RefArray>& inputs, const Attributes& attributes,
                const std::vector<RefArray>& weights) {
  const auto outputs = run_reference(op, inputs, attributes);
  double total = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    for (std::size_t i = 0; i < outputs[k].values.size(); ++i)
      if (weights[k].present) total += weights[k].values[i] * outputs[k].values[i];
  return total;
}

std::vector<RefArray> make_weights(const std::vector<RefArray>& outputs, std::mt19937_64& random) {
  auto weights = outputs;
  for (auto& weight : weights) {
    weight.present = is_floating(weight.dtype);
    for (auto& value : weight.values) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  }
  return weights;
}

std::string compare_input(const OpDef& op, std::vector<RefArray> inputs, std::size_t k,
                          const Attributes& attributes, const std::vector<RefArray>& weights,
                          const Tensor& gradient, std::mt19937_64& random) {
  const auto n = inputs[k].values.size();
  if (!(gradient.shape() == inputs[k].shape))
    return fmt::format("the gradient of input {} has shape {} instead of {}", k,
                       gradient.shape().to_string(), inputs[k].shape.to_string());
  if (gradient.dtype() != inputs[k].dtype)
    return fmt::format("the gradient of input {} is {} instead of {}", k, name_of(gradient.dtype()),
                       name_of(inputs[k].dtype));
  const auto host = gradient.to_host();
  for (std::size_t probe = 0; probe < std::min(n, kProbes); ++probe) {
    const auto i = n <= kProbes ? probe : random() % n;
    const double x = inputs[k].values[i];
    const double step = 1e-5 * std::max(1.0, std::fabs(x));
    inputs[k].values[i] = x + step;
    const double above = weighted(op, inputs, attributes, weights);
    inputs[k].values[i] = x - step;
    const double below = weighted(op, inputs, attributes, weights);
    inputs[k].values[i] = x;
    const double expected = (above - below) / (2 * step);
    const double actual = host.at(static_cast<std::int64_t>(i));
    // The differences lose half of the digits; what they are of may be large.
    const double allowed = 1e-5 * std::max(1.0, std::fabs(expected)) +
                           1e-10 * std::max(std::fabs(above), std::fabs(below));
    if (!(std::fabs(actual - expected) <= allowed))
      return fmt::format("the gradient of input {} at element {} is {} instead of {}", k, i, actual,
                         expected);
  }
  return {};
}

}  // namespace

std::string check_gradient(const OpDef& op, const OpSample& sample, std::uint64_t seed,
                           const Queue& queue) {
  std::mt19937_64 random(seed + 1);
  const auto inputs = make_inputs(sample, DType::float64, seed);
  const auto weights = make_weights(run_reference(op, inputs, sample.attributes), random);
  std::vector<Tensor> tensors, leaves;
  for (const auto& input : inputs) {
    tensors.push_back(input.present ? Tensor::from_host(queue, to_host_array(input)) : Tensor());
    if (!is_differentiable(input)) continue;
    tensors.back().set_requires_grad();
    leaves.push_back(tensors.back());
  }
  Tape tape;
  std::vector<Tensor> results, grads;
  const auto outputs = call_op(op, tensors, sample.attributes);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!weights[k].present) continue;
    results.push_back(outputs[k]);
    grads.push_back(Tensor::from_host(queue, to_host_array(weights[k])));
  }
  const auto result = tape.gradient(results, leaves, grads);
  std::size_t next = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_differentiable(inputs[k])) continue;
    const auto problem =
        compare_input(op, inputs, k, sample.attributes, weights, result[next++], random);
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace netcl::selftest_detail
