// Optimisers, schedules, averages.
#include "netcl/optim.h"

#include "common.h"

namespace netcl::python {
namespace {

using optim::Optimizer;
using optim::ParameterGroup;
using optim::Schedule;

// Tensors, or dicts {"params": ..., "lr_scale": ..., "weight_decay": ...}.
std::vector<ParameterGroup> groups_of(nb::handle parameters) {
  std::vector<ParameterGroup> groups;
  ParameterGroup plain;
  for (nb::handle item : nb::borrow<nb::iterable>(parameters)) {
    if (nb::isinstance<Tensor>(item)) {
      plain.parameters.push_back(nb::cast<Tensor>(item));
      continue;
    }
    const auto dict = nb::cast<nb::dict>(item);
    ParameterGroup group{tensors_of(dict["params"])};
    if (dict.contains("lr_scale")) group.lr_scale = nb::cast<double>(nb::object(dict["lr_scale"]));
    if (dict.contains("weight_decay"))
      group.weight_decay = nb::cast<double>(nb::object(dict["weight_decay"]));
    groups.push_back(std::move(group));
  }
  if (!plain.parameters.empty() || groups.empty()) groups.insert(groups.begin(), std::move(plain));
  return groups;
}

nb::dict state_dict(const Optimizer& optimizer) {
  const auto state = optimizer.state();
  nb::dict tensors, result;
  for (const auto& one : state.tensors) tensors[one.name.c_str()] = one.tensor;
  result["steps"] = state.steps;
  result["lr"] = state.lr;
  result["parameter_steps"] = state.parameter_steps;
  result["tensors"] = tensors;
  return result;
}

void load_state_dict(Optimizer& optimizer, const nb::dict& dict) {
  optim::OptimizerState state;
  state.steps = nb::cast<std::int64_t>(nb::object(dict["steps"]));
  state.lr = nb::cast<double>(nb::object(dict["lr"]));
  state.parameter_steps = nb::cast<std::vector<std::int64_t>>(nb::object(dict["parameter_steps"]));
  for (auto [name, tensor] : nb::cast<nb::dict>(nb::object(dict["tensors"])))
    state.tensors.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(tensor)});
  optimizer.load_state(state);
}

void bind_base(nb::module_& m) {
  nb::class_<Optimizer>(m, "Optimizer", "What the optimisers have in common.")
      .def("step", &Optimizer::step, unlocked(), "Changes every parameter that has a gradient.")
      .def("zero_grad", &Optimizer::zero_grad, unlocked(), "Drops the gradients.")
      .def_prop_rw("lr", &Optimizer::lr, &Optimizer::set_lr)
      .def_prop_ro("steps", &Optimizer::steps)
      .def("parameters", &Optimizer::parameters)
      .def("state_dict", &state_dict)
      .def("load_state_dict", &load_state_dict, "state"_a)
      .def("__repr__", [](const Optimizer& o) {
        return o.name() + "(lr=" + nb::cast<std::string>(nb::str(nb::float_(o.lr()))) + ", " +
               std::to_string(o.parameters().size()) + " parameters)";
      });
}

void bind_rules(nb::module_& m) {
  nb::class_<optim::SGD, Optimizer>(m, "SGD").def(
      "__init__",
      [](optim::SGD* self, nb::object parameters, double lr, double momentum, double dampening,
         double weight_decay, bool nesterov) {
        new (self)
            optim::SGD(groups_of(parameters), {lr, momentum, dampening, weight_decay, nesterov});
      },
      "params"_a, "lr"_a = 0.01, "momentum"_a = 0.0, "dampening"_a = 0.0, "weight_decay"_a = 0.0,
      "nesterov"_a = false);
  nb::class_<optim::Adam, Optimizer>(m, "Adam").def(
      "__init__",
      [](optim::Adam* self, nb::object parameters, double lr, std::pair<double, double> betas,
         double eps, double weight_decay) {
        new (self)
            optim::Adam(groups_of(parameters), {lr, betas.first, betas.second, eps, weight_decay});
      },
      "params"_a, "lr"_a = 1e-3, "betas"_a = std::pair(0.9, 0.999), "eps"_a = 1e-8,
      "weight_decay"_a = 0.0);
  nb::class_<optim::AdamW, optim::Adam>(m, "AdamW", "Adam whose decay does not pass the gradient.")
      .def(
          "__init__",
          [](optim::AdamW* self, nb::object parameters, double lr, std::pair<double, double> betas,
             double eps, double weight_decay) {
            new (self) optim::AdamW(groups_of(parameters),
                                    {lr, betas.first, betas.second, eps, weight_decay});
          },
          "params"_a, "lr"_a = 1e-3, "betas"_a = std::pair(0.9, 0.999), "eps"_a = 1e-8,
          "weight_decay"_a = 0.01);
  nb::class_<optim::RMSProp, Optimizer>(m, "RMSProp")
      .def(
          "__init__",
          [](optim::RMSProp* self, nb::object parameters, double lr, double alpha, double eps,
             double weight_decay, double momentum) {
            new (self)
                optim::RMSProp(groups_of(parameters), {lr, alpha, eps, weight_decay, momentum});
          },
          "params"_a, "lr"_a = 0.01, "alpha"_a = 0.99, "eps"_a = 1e-8, "weight_decay"_a = 0.0,
          "momentum"_a = 0.0);
}

void bind_schedules(nb::module_& m) {
  using Pointer = std::shared_ptr<Optimizer>;
  nb::class_<Schedule>(m, "Schedule",
                       "Changes an optimiser's rate: step() once per epoch or batch.")
      .def("step", &Schedule::step)
      .def_prop_ro("count", &Schedule::count)
      .def_prop_ro("base_lr", &Schedule::base_lr)
      .def("state_dict", &Schedule::state)
      .def("load_state_dict", &Schedule::load_state, "state"_a);
  nb::class_<optim::StepSchedule, Schedule>(m, "StepSchedule")
      .def(nb::init<Pointer, std::int64_t, double>(), "optimizer"_a, "every"_a, "gamma"_a = 0.1);
  nb::class_<optim::CosineSchedule, Schedule>(m, "CosineSchedule")
      .def(nb::init<Pointer, std::int64_t, std::int64_t, double>(), "optimizer"_a, "total"_a,
           "warmup"_a = 0, "lowest"_a = 0.0);
  nb::class_<optim::WarmupSchedule, Schedule>(m, "WarmupSchedule")
      .def(nb::init<Pointer, std::int64_t>(), "optimizer"_a, "warmup"_a);
  nb::class_<optim::PlateauSchedule, Schedule>(m, "PlateauSchedule")
      .def(nb::init<Pointer, double, int, double, double>(), "optimizer"_a, "factor"_a = 0.1,
           "patience"_a = 10, "threshold"_a = 1e-4, "lowest"_a = 0.0)
      .def("step", &optim::PlateauSchedule::step, "measure"_a);
}

}  // namespace

void bind_optim(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("optim", "Optimisers.");
  bind_base(m);
  bind_rules(m);
  bind_schedules(m);
  m.def(
      "clip_grad_norm",
      [](nb::object parameters, double max_norm) {
        const auto list = tensors_of(parameters);
        Unlocked now;
        return optim::clip_grad_norm(list, max_norm);
      },
      "parameters"_a, "max_norm"_a,
      "Scales all gradients; returns their norm before, as a tensor.");
  m.def(
      "clip_grad_value",
      [](nb::object parameters, double limit) {
        const auto list = tensors_of(parameters);
        Unlocked now;
        optim::clip_grad_value(list, limit);
      },
      "parameters"_a, "limit"_a);
  nb::class_<optim::EMA>(m, "EMA", "An average of a model's weights.")
      .def(nb::init<const nn::Module&, double>(), "model"_a, "decay"_a = 0.999)
      .def("update", &optim::EMA::update, "model"_a, unlocked())
      .def("copy_to", &optim::EMA::copy_to, "model"_a, unlocked())
      .def_prop_ro("updates", &optim::EMA::updates);
  nb::class_<optim::GradScaler>(m, "GradScaler", "Loss scaling for gradients in float16.")
      .def(nb::init<double, std::int64_t>(), "scale"_a = 65536.0, "interval"_a = 2000)
      .def("scale_loss", &optim::GradScaler::scale_loss, "loss"_a, unlocked())
      .def("step", &optim::GradScaler::step, "optimizer"_a, unlocked())
      .def_prop_ro("scale", &optim::GradScaler::scale);
}

}  // namespace netcl::python
