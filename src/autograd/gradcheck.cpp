// Gradients against central differences.
#include <cmath>
#include <random>

#include "autograd/tape_state.h"
#include "base/check.h"
#include "netcl/autograd.h"
#include "netcl/ops.h"
#include "ops/coordinates.h"

namespace netcl {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Float64 copies; those that were floating are differentiated.
std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const auto& input : inputs) {
    check<ArgumentError>(static_cast<bool>(input), "[gradcheck] no input may be an empty tensor");
    if (!is_floating(input.dtype())) {
      leaves.push_back(input);
      continue;
    }
    leaves.push_back(input.detach().astype(DType::float64).clone());
    leaves.back().set_requires_grad();
  }
  return leaves;
}

// A number that depends on every element of the results, each with a weight of its own.
Tensor weighted_sum(const std::vector<Tensor>& results, std::uint64_t seed) {
  Tensor total;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& result = results[i];
    if (!is_floating(result.dtype())) continue;
    const auto weights = Tensor::random(result.queue(), result.shape(), seed + i,
                                        Distribution::normal, result.dtype());
    const auto part = ops::sum(result * weights);
    total = total ? total + part : part;
  }
  check<ArgumentError>(static_cast<bool>(total),
                       "[gradcheck] the function must give a floating result");
  return total;
}

class Checker {
 public:
  Checker(const Function& fn, const GradcheckOptions& options)
      : fn_(fn), options_(options), random_(options.seed) {}

  void check(const std::vector<Tensor>& leaves) {
    Tape tape;
    const auto loss = weighted_sum(fn_(leaves), options_.seed);
    std::vector<Tensor> wanted;
    for (const auto& leaf : leaves)
      if (leaf.requires_grad()) wanted.push_back(leaf);
    if (wanted.empty() || !loss.requires_grad()) {
      result_ = {false, 0, "[gradcheck] the result does not depend on a floating input"};
      return;
    }
    const auto grads = tape.gradient(loss, wanted);
    tape.stop();
    std::size_t next = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].requires_grad()) compare(leaves, i, grads[next++]);
  }

  const GradcheckResult& result() const { return result_; }

 private:
  double value_at(const std::vector<Tensor>& leaves) const {
    const no_grad off;
    return weighted_sum(fn_(leaves), options_.seed).item();
  }

  void compare(const std::vector<Tensor>& leaves, std::size_t input, const Tensor& gradient) {
    const auto& leaf = leaves[input];
    const auto values = leaf.to_vector<double>();
    const auto analytic = gradient.to_vector<double>();
    const auto n = values.size();
    for (std::size_t probe = 0; probe < std::min(n, options_.max_elements); ++probe) {
      const auto i = n <= options_.max_elements ? probe : random_() % n;
      const double step = options_.step * std::max(1.0, std::fabs(values[i]));
      const auto moved = [&](double by) {
        auto changed = values;
        changed[i] += by;
        auto others = leaves;
        others[input] = Tensor::from_host(leaf.queue(), HostView(changed, leaf.shape()));
        return value_at(others);
      };
      const double above = moved(step), below = moved(-step);
      judge(leaf, input, i, analytic[i], (above - below) / (2 * step));
    }
  }

  void judge(const Tensor& leaf, std::size_t input, std::size_t i, double analytic,
             double numeric) {
    const double allowed = options_.atol + options_.rtol * std::fabs(numeric);
    const double error = std::fabs(analytic - numeric) / allowed;
    if (error <= result_.worst) return;
    result_.worst = std::isnan(error) ? INFINITY : error;
    if (error <= 1 || !result_.ok) return;
    result_.ok = false;
    const auto place = coordinates_of(leaf.shape(), static_cast<std::int64_t>(i));
    result_.message =
        fmt::format("[gradcheck] the gradient of input {} at ({}) must be {} within {:.2g}: {}",
                    input, join(place, ", "), numeric, allowed, analytic);
  }

  const Function& fn_;
  const GradcheckOptions& options_;
  std::mt19937_64 random_;
  GradcheckResult result_;
};

// The gradients of fn as a function that can be checked itself.
Function gradient_function(const Function& fn, std::uint64_t seed) {
  return [&fn, seed](const std::vector<Tensor>& inputs) {
    Tape tape;
    std::vector<Tensor> wanted, leaves;
    for (const auto& input : inputs) {
      leaves.push_back(input);
      if (!is_floating(input.dtype())) continue;
      if (!input.requires_grad()) leaves.back().set_requires_grad();
      wanted.push_back(leaves.back());
    }
    const detail::GradMode on(true);
    return tape.gradient(weighted_sum(fn(leaves), seed + 1000), wanted, {}, {.create_graph = true});
  };
}

}  // namespace

GradcheckResult gradcheck(const Function& fn, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options) {
  check<ArgumentError>(static_cast<bool>(fn), "[gradcheck] the function must not be empty");
  check<ArgumentError>(options.step > 0, "[gradcheck] the step must be positive: {}", options.step);
  const auto leaves = leaves_of(inputs);
  Checker first(fn, options);
  first.check(leaves);
  if (!first.result() || !options.second_order) return first.result();
  const auto gradients = gradient_function(fn, options.seed);
  Checker second(gradients, options);
  second.check(leaves);
  auto result = second.result();
  if (!result) result.message += " (second order)";
  result.worst = std::max(result.worst, first.result().worst);
  return result;
}

}  // namespace netcl
