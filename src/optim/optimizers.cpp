#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"
#include "cl/recording.h"
#include "netcl/autograd.h"
#include "netcl/optim.h"
#include "optim/multi_tensor.h"
#include "tensor/access.h"

namespace netcl::optim {
namespace {

void check_number(const char* optimizer, const char* what, double value, double low, double high) {
  check<ArgumentError>(value >= low && value < high, "[{}] {} must be in [{}, {}): {}", optimizer,
                       what, low, high, value);
}

std::vector<ParameterGroup> one_group(std::vector<Tensor> parameters) {
  return {ParameterGroup{std::move(parameters)}};
}

// Unseen by a recorder, which would repeat these numbers for ever.
void store_numbers(const Tensor& to, const double (&numbers)[8]) {
  const cl::RecordingScope unrecorded(nullptr);
  const std::vector<double> values(std::begin(numbers), std::end(numbers));
  if (to.dtype() == DType::float64)
    to.copy_from(Tensor::from_host(to.queue(), values));
  else
    to.copy_from(Tensor::from_host(to.queue(), std::vector<float>(values.begin(), values.end())));
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay)
    : weight_decay_(weight_decay), groups_(std::move(groups)) {
  set_lr(lr);
  check_number("optimizer", "weight_decay", weight_decay, 0, INFINITY);
  for (const auto& group : groups_)
    for (const auto& tensor : group.parameters) {
      // One that is unmarked for now is not changed, because it gets no gradient.
      check<ArgumentError>(tensor && TensorAccess::grad_state(tensor) != nullptr,
                           "[optimizer] parameter {} must require a gradient", parameters_.size());
      check<ArgumentError>(tensor.is_contiguous(), "[optimizer] parameter {} must be contiguous",
                           parameters_.size());
      for (std::size_t i = 0; i < parameters_.size(); ++i)
        check<ArgumentError>(
            TensorAccess::grad_state(parameters_[i].tensor) != TensorAccess::grad_state(tensor),
            "[optimizer] a parameter must come once: {} and {} are the same", i,
            parameters_.size());
      parameters_.push_back(
          {tensor, group.lr_scale, group.weight_decay < 0 ? weight_decay : group.weight_decay});
    }
  check<ArgumentError>(!parameters_.empty(), "[optimizer] there must be at least one parameter");
}

void Optimizer::set_lr(double lr) {
  check_number("optimizer", "lr", lr, 0, INFINITY);
  lr_ = lr;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> result;
  for (const auto& parameter : parameters_) result.push_back(parameter.tensor);
  return result;
}

void Optimizer::zero_grad() const {
  for (const auto& parameter : parameters_) parameter.tensor.set_grad({});
}

Optimizer::Rule Optimizer::rule_of(const Parameter& parameter) const {
  return rule(lr_ * parameter.lr_scale, parameter.weight_decay, parameter.steps);
}

// Parameters that share dtype, device, settings and age share launches.
void Optimizer::step() {
  const no_grad off;
  ++steps_;
  const auto names = slots();
  struct Group {
    std::vector<Update> updates;
    std::vector<std::size_t> members;
  };
  using Key = std::tuple<DType, std::uintptr_t, double, double, std::int64_t>;
  std::map<Key, Group> launches;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = parameters_[i];
    const auto gradient = parameter.tensor.grad();
    if (!gradient) continue;
    const auto& tensor = parameter.tensor;
    while (parameter.slots.size() < names.size())
      parameter.slots.push_back(
          Tensor::from_shape(tensor.queue(), tensor.shape(), accumulator_dtype(tensor.dtype())));
    ++parameter.steps;
    Update update{tensor, gradient, {}, {}};
    if (!names.empty()) update.first = parameter.slots[0];
    if (names.size() > 1) update.second = parameter.slots[1];
    auto& group = launches[{tensor.dtype(), tensor.queue().int_ptr(), parameter.lr_scale,
                            parameter.weight_decay, parameter.steps}];
    group.updates.push_back(std::move(update));
    group.members.push_back(i);
  }
  bool is_first = true;
  for (const auto& [key, group] : launches) {
    const auto& target = group.updates[0].target;
    const auto how = rule_of(parameters_[group.members[0]]);
    Tensor stored;
    if (cl::is_recording()) {
      stored = Tensor::empty(target.queue(), {8}, accumulator_dtype(target.dtype()));
      store_numbers(stored, how.numbers);
      let_replays_count(group.members, stored, is_first);
    }
    update_tensors(static_cast<UpdateRule>(how.kind), std::to_array(how.numbers), group.updates,
                   stored);
    is_first = false;
  }
}

// A replay does not run step(): at this place of it the steps are counted and the numbers, which
// depend on them and on the learning rate, are stored anew.
void Optimizer::let_replays_count(const std::vector<std::size_t>& members, const Tensor& numbers,
                                  bool counts_step) {
  const std::weak_ptr<Optimizer*> self = self_;
  cl::t_recorder->check([self, members, numbers, counts_step] {
    const auto alive = self.lock();
    check<ArgumentError>(alive != nullptr,
                         "[CapturedStep] the optimiser of a recorded step must still exist");
    auto& optimizer = **alive;
    if (counts_step) ++optimizer.steps_;
    for (const auto i : members) ++optimizer.parameters_[i].steps;
    store_numbers(numbers, optimizer.rule_of(optimizer.parameters_[members[0]]).numbers);
  });
}

OptimizerState Optimizer::state() const {
  OptimizerState state{steps_, lr_, {}, {}};
  const auto names = slots();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.parameter_steps.push_back(parameters_[i].steps);
    for (std::size_t k = 0; k < parameters_[i].slots.size(); ++k)
      state.tensors.push_back({fmt::format("{}.{}", names[k], i), parameters_[i].slots[k]});
  }
  return state;
}

void Optimizer::load_state(const OptimizerState& state) {
  check<ArgumentError>(state.parameter_steps.size() == parameters_.size(),
                       "[optimizer] the state must be of {} parameters: {}", parameters_.size(),
                       state.parameter_steps.size());
  std::map<std::string, Tensor> given;
  for (const auto& one : state.tensors) given.emplace(one.name, one.tensor);
  const auto names = slots();
  std::vector<std::vector<Tensor>> loaded(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& tensor = parameters_[i].tensor;
    for (std::size_t k = 0; state.parameter_steps[i] > 0 && k < names.size(); ++k) {
      const auto name = fmt::format("{}.{}", names[k], i);
      const auto found = given.find(name);
      check<ArgumentError>(found != given.end(), "[optimizer] the state has no '{}'", name);
      if (!(found->second.shape() == tensor.shape()))
        fail<ShapeError>("[optimizer] '{}' must have the shape {}: {}", name,
                         tensor.shape().to_string(), found->second.shape().to_string());
      loaded[i].push_back(
          found->second.to(tensor.queue()).astype(accumulator_dtype(tensor.dtype())).clone());
    }
  }
  set_lr(state.lr);
  steps_ = state.steps;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].steps = state.parameter_steps[i];
    parameters_[i].slots = std::move(loaded[i]);
  }
}

// ---- SGD

SGD::SGD(std::vector<Tensor> parameters, SGDOptions options)
    : SGD(one_group(std::move(parameters)), options) {}
SGD::SGD(std::vector<ParameterGroup> groups, SGDOptions options)
    : Optimizer(std::move(groups), options.lr, options.weight_decay), options_(options) {
  check_number("SGD", "momentum", options.momentum, 0, 1);
  check_number("SGD", "dampening", options.dampening, 0, 1);
  check<ArgumentError>(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                       "[SGD] Nesterov needs momentum and no dampening: {} and {}",
                       options.momentum, options.dampening);
}
Optimizer::Rule SGD::rule(double lr, double weight_decay, std::int64_t step) const {
  return {static_cast<int>(UpdateRule::sgd),
          {lr, options_.momentum, options_.dampening, weight_decay, options_.nesterov ? 1.0 : 0.0,
           step == 1 ? 1.0 : 0.0}};
}
std::vector<std::string> SGD::slots() const {
  return options_.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

// ---- Adam and AdamW

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options)
    : Adam(one_group(std::move(parameters)), options, false) {}
Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions options)
    : Adam(std::move(groups), options, false) {}
Adam::Adam(std::vector<ParameterGroup> groups, AdamOptions options, bool decoupled)
    : Optimizer(std::move(groups), options.lr, options.weight_decay),
      options_(options),
      decoupled_(decoupled) {
  check_number("Adam", "beta1", options.beta1, 0, 1);
  check_number("Adam", "beta2", options.beta2, 0, 1);
  check_number("Adam", "eps", options.eps, 0, INFINITY);
}
Optimizer::Rule Adam::rule(double lr, double weight_decay, std::int64_t step) const {
  const auto t = static_cast<double>(step);
  return {static_cast<int>(UpdateRule::adam),
          {lr, options_.beta1, options_.beta2, options_.eps, weight_decay, decoupled_ ? 1.0 : 0.0,
           1 - std::pow(options_.beta1, t), 1 - std::pow(options_.beta2, t)}};
}
std::vector<std::string> Adam::slots() const { return {"exp_avg", "exp_avg_sq"}; }

AdamW::AdamW(std::vector<Tensor> parameters, AdamOptions options)
    : Adam(one_group(std::move(parameters)), options, true) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, AdamOptions options)
    : Adam(std::move(groups), options, true) {}

// ---- RMSProp

RMSProp::RMSProp(std::vector<Tensor> parameters, RMSPropOptions options)
    : RMSProp(one_group(std::move(parameters)), options) {}
RMSProp::RMSProp(std::vector<ParameterGroup> groups, RMSPropOptions options)
    : Optimizer(std::move(groups), options.lr, options.weight_decay), options_(options) {
  check_number("RMSProp", "alpha", options.alpha, 0, 1);
  check_number("RMSProp", "momentum", options.momentum, 0, 1);
  check_number("RMSProp", "eps", options.eps, 0, INFINITY);
}
Optimizer::Rule RMSProp::rule(double lr, double weight_decay, std::int64_t) const {
  return {static_cast<int>(UpdateRule::rms_prop),
          {lr, options_.alpha, options_.eps, weight_decay, options_.momentum}};
}
std::vector<std::string> RMSProp::slots() const {
  std::vector<std::string> names{"square_avg"};
  if (options_.momentum > 0) names.emplace_back("momentum");
  return names;
}

}  // namespace netcl::optim
