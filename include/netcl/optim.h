// Optimisers, schedules of their rate, clipping, averages of weights, loss scaling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netcl/nn.h"
#include "netcl/tensor.h"

namespace netcl::optim {

// Parameters with settings of their own.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  double lr_scale = 1;
  double weight_decay = -1;  // below 0: the optimiser's
};

// What must be kept to go on as if nothing had happened.
struct OptimizerState {
  std::int64_t steps = 0;
  double lr = 0;
  std::vector<std::int64_t> parameter_steps;  // how often each parameter was changed
  std::vector<nn::NamedTensor> tensors;       // "exp_avg.3"
};

// Steps are multi-tensor kernels: one launch for up to eight parameters.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that has a gradient.
  void step();
  void zero_grad() const;  // drops the gradients
  double lr() const { return lr_; }
  void set_lr(double lr);
  std::int64_t steps() const { return steps_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  std::vector<Tensor> parameters() const;

  virtual std::string name() const = 0;  // "Adam"
  OptimizerState state() const;          // the tensors are the optimiser's own
  void load_state(const OptimizerState& state);

 protected:
  Optimizer(std::vector<ParameterGroup> groups, double lr, double weight_decay);

  // The update of one launch: which rule of multi_tensor.cl, and its numbers.
  struct Rule {
    int kind = 0;
    double numbers[8] = {};
  };
  // `step` counts the changes of the parameters, from 1 on.
  virtual Rule rule(double lr, double weight_decay, std::int64_t step) const = 0;
  virtual std::vector<std::string> slots() const = 0;  // names of the state per parameter
  double weight_decay_;

 private:
  struct Parameter {
    Tensor tensor;
    double lr_scale, weight_decay;
    std::int64_t steps = 0;
    std::vector<Tensor> slots = {};  // made at the first step
  };
  Rule rule_of(const Parameter& parameter) const;
  void let_replays_count(const std::vector<std::size_t>& members, const Tensor& numbers,
                         bool counts_step);

  std::vector<ParameterGroup> groups_;
  std::vector<Parameter> parameters_;
  double lr_;
  std::int64_t steps_ = 0;
  std::shared_ptr<Optimizer*> self_ = std::make_shared<Optimizer*>(this);  // for recorded steps
};

// g = grad + weight_decay * p;  v = momentum * v + (1 - dampening) * g;  p -= lr * v
// Nesterov: p -= lr * (g + momentum * v). The first v is g.
struct SGDOptions {
  double lr = 0.01, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, SGDOptions options = {});
  explicit SGD(std::vector<ParameterGroup> groups, SGDOptions options = {});
  std::string name() const override { return "SGD"; }

 private:
  Rule rule(double lr, double weight_decay, std::int64_t step) const override;
  std::vector<std::string> slots() const override;
  SGDOptions options_;
};

// The decay is added to the gradient; AdamW's takes lr * weight_decay of the weight instead.
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, AdamOptions options = {});
  explicit Adam(std::vector<ParameterGroup> groups, AdamOptions options = {});
  std::string name() const override { return "Adam"; }

 protected:
  Adam(std::vector<ParameterGroup> groups, AdamOptions options, bool decoupled);

 private:
  Rule rule(double lr, double weight_decay, std::int64_t step) const override;
  std::vector<std::string> slots() const override;
  AdamOptions options_;
  bool decoupled_ = false;
};
struct AdamWOptions : AdamOptions {
  AdamWOptions() { weight_decay = 0.01; }
};
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, AdamOptions options = AdamWOptions());
  explicit AdamW(std::vector<ParameterGroup> groups, AdamOptions options = AdamWOptions());
  std::string name() const override { return "AdamW"; }
};

// s = alpha * s + (1 - alpha) * g^2;  p -= lr * g / (sqrt(s) + eps), with momentum if asked
struct RMSPropOptions {
  double lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
};
class RMSProp : public Optimizer {
 public:
  explicit RMSProp(std::vector<Tensor> parameters, RMSPropOptions options = {});
  explicit RMSProp(std::vector<ParameterGroup> groups, RMSPropOptions options = {});
  std::string name() const override { return "RMSProp"; }

 private:
  Rule rule(double lr, double weight_decay, std::int64_t step) const override;
  std::vector<std::string> slots() const override;
  RMSPropOptions options_;
};

// Scales all gradients so that their norm, taken together, is at most max_norm; returns the norm
// before, a tensor of one element: nothing waits. Gradients that are not finite stay as they are.
Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);
void clip_grad_value(const std::vector<Tensor>& parameters, double limit);

// ---- schedules, bound to an optimiser: step() once per epoch (or batch)
class Schedule {
 public:
  virtual ~Schedule() = default;
  void step();
  std::int64_t count() const { return count_; }
  double base_lr() const { return base_; }
  std::vector<double> state() const;  // count, base, and what the schedule keeps
  void load_state(const std::vector<double>& state);

 protected:
  explicit Schedule(std::shared_ptr<Optimizer> optimizer);
  virtual double lr_at(std::int64_t count) const = 0;
  void apply();
  virtual std::vector<double> more_state() const { return {}; }
  virtual void load_more(const std::vector<double>&) {}
  std::shared_ptr<Optimizer> optimizer_;
  double base_;
  std::int64_t count_ = 0;
};

class StepSchedule : public Schedule {  // times gamma every `every` steps
 public:
  StepSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t every, double gamma = 0.1);

 private:
  double lr_at(std::int64_t count) const override;
  std::int64_t every_;
  double gamma_;
};

// Linear from 0 over `warmup` steps, then a half cosine to `lowest` at `total`.
class CosineSchedule : public Schedule {
 public:
  CosineSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t total, std::int64_t warmup = 0,
                 double lowest = 0);

 private:
  double lr_at(std::int64_t count) const override;
  std::int64_t total_, warmup_;
  double lowest_;
};

class WarmupSchedule : public Schedule {  // linear over `warmup` steps, then constant
 public:
  WarmupSchedule(std::shared_ptr<Optimizer> optimizer, std::int64_t warmup);

 private:
  double lr_at(std::int64_t count) const override;
  std::int64_t warmup_;
};

// Times `factor` when the measure has not become smaller for more than `patience` steps.
class PlateauSchedule : public Schedule {
 public:
  PlateauSchedule(std::shared_ptr<Optimizer> optimizer, double factor = 0.1, int patience = 10,
                  double threshold = 1e-4, double lowest = 0);
  void step(double measure);

 private:
  double lr_at(std::int64_t count) const override;
  std::vector<double> more_state() const override;
  void load_more(const std::vector<double>& state) override;
  double factor_, threshold_, lowest_, scale_ = 1, best_;
  int patience_, bad_ = 0;
};

// An average of a model's weights: average = decay * average + (1 - decay) * weight, with a smaller
// decay at the start: min(decay, (1 + n) / (10 + n)). Buffers are copied.
class EMA {
 public:
  explicit EMA(const nn::Module& model, double decay = 0.999);
  void update(const nn::Module& model);
  void copy_to(nn::Module& model) const;
  const std::vector<nn::NamedTensor>& averages() const { return averages_; }
  std::int64_t updates() const { return updates_; }

 private:
  double decay_;
  std::int64_t updates_ = 0;
  std::vector<nn::NamedTensor> averages_;
  std::size_t parameters_ = 0;
};

// For gradients in float16: the loss is scaled up, the gradients down again; a step whose gradients
// are not finite is left out and the scale halved, after `interval` good ones it is doubled.
class GradScaler {
 public:
  explicit GradScaler(double scale = 65536, std::int64_t interval = 2000);
  Tensor scale_loss(const Tensor& loss) const;
  bool step(Optimizer& optimizer);  // false: left out
  double scale() const { return scale_; }

 private:
  double scale_;
  std::int64_t interval_, good_ = 0;
};

}  // namespace netcl::optim
