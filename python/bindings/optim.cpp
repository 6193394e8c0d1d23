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
  if (nb::isinstance<nn::Module>(parameters))
    throw DtypeError("[optimizer] it needs parameters, not a module: use model.parameters()");
  for (nb::handle item : nb::borrow<nb::iterable>(parameters)) {
    if (nb::isinstance<Tensor>(item)) {
      plain.parameters.push_back(nb::cast<Tensor>(item));
      continue;
    }
    if (!nb::isinstance<nb::dict>(item))
      throw DtypeError("[optimizer] parameters must be tensors, or dicts of them: " +
                       nb::cast<std::string>(item.type().attr("__name__")));
    const auto dict = nb::cast<nb::dict>(item);
    for (auto [key, value] : dict) {
      const auto name = nb::cast<std::string>(nb::str(key));
      if (name != "params" && name != "lr_scale" && name != "weight_decay")
        throw ArgumentError("[optimizer] a group has params, lr_scale and weight_decay: '" + name +
                            "'");
    }
    if (!dict.contains("params")) throw ArgumentError("[optimizer] a group must have params");
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
      .def_prop_rw("lr", &Optimizer::lr, &Optimizer::set_lr,
                   "The rate; may be changed at any time.")
      .def_prop_ro("steps", &Optimizer::steps, "How many were done.")
      .def("parameters", &Optimizer::parameters, "What it changes.")
      .def("state_dict", &state_dict, "What must be kept to go on as if nothing had happened.")
      .def("load_state_dict", &load_state_dict, "state"_a, "Goes on where the state was taken.")
      .def("__repr__", [](const Optimizer& o) {
        return o.name() + "(lr=" + nb::cast<std::string>(nb::str(nb::float_(o.lr()))) + ", " +
               std::to_string(o.parameters().size()) + " parameters)";
      });
}

void bind_rules(nb::module_& m) {
  nb::class_<optim::SGD, Optimizer>(
      m, "SGD",
      "p -= lr * v, v = momentum * v + (1 - dampening) * (gradient + weight_decay * p).\n"
      "\n`params` are tensors, or dicts {\"params\": tensors, \"lr_scale\": ..., \"weight_decay\": "
      "...}.")
      .def(
          "__init__",
          [](optim::SGD* self, nb::object parameters, double lr, double momentum, double dampening,
             double weight_decay, bool nesterov) {
            new (self) optim::SGD(groups_of(parameters),
                                  {lr, momentum, dampening, weight_decay, nesterov});
          },
          "params"_a, "lr"_a = 0.01, "momentum"_a = 0.0, "dampening"_a = 0.0,
          "weight_decay"_a = 0.0, "nesterov"_a = false);
  nb::class_<optim::Adam, Optimizer>(
      m, "Adam",
      "Steps of the size of the rate, from averages of the gradient and of its square.\n\n"
      ">>> model = nc.nn.Linear(2, 1)\n>>> nc.optim.Adam(model.parameters(), "
      "lr=0.01)\nAdam(lr=0.01, 2 parameters)\n")
      .def(
          "__init__",
          [](optim::Adam* self, nb::object parameters, double lr, std::pair<double, double> betas,
             double eps, double weight_decay) {
            new (self) optim::Adam(groups_of(parameters),
                                   {lr, betas.first, betas.second, eps, weight_decay});
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
  nb::class_<optim::RMSProp, Optimizer>(
      m, "RMSProp", "The gradient divided by the root of the average of its square.")
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
      .def("step", &Schedule::step, "Sets the next rate.")
      .def_prop_ro("count", &Schedule::count, "How often step() was called.")
      .def_prop_ro("base_lr", &Schedule::base_lr, "The optimiser's rate at the start.")
      .def("state_dict", &Schedule::state, "Where it is.")
      .def("load_state_dict", &Schedule::load_state, "state"_a,
           "Goes on where the state was taken.");
  nb::class_<optim::StepSchedule, Schedule>(m, "StepSchedule", "Times gamma every so many steps.")
      .def(nb::init<Pointer, std::int64_t, double>(), "optimizer"_a, "every"_a, "gamma"_a = 0.1);
  nb::class_<optim::CosineSchedule, Schedule>(
      m, "CosineSchedule",
      "Linear from 0 over `warmup` steps, then a half cosine to `lowest` at `total`.")
      .def(nb::init<Pointer, std::int64_t, std::int64_t, double>(), "optimizer"_a, "total"_a,
           "warmup"_a = 0, "lowest"_a = 0.0);
  nb::class_<optim::WarmupSchedule, Schedule>(m, "WarmupSchedule",
                                              "Linear from 0 over `warmup` steps, then constant.")
      .def(nb::init<Pointer, std::int64_t>(), "optimizer"_a, "warmup"_a);
  nb::class_<optim::PlateauSchedule, Schedule>(
      m, "PlateauSchedule",
      "Times `factor` when the measure has not become smaller for more than `patience` steps.")
      .def(nb::init<Pointer, double, int, double, double>(), "optimizer"_a, "factor"_a = 0.1,
           "patience"_a = 10, "threshold"_a = 1e-4, "lowest"_a = 0.0)
      .def("step", &optim::PlateauSchedule::step, "measure"_a,
           "Tells the measure, of which small is good.");
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
      "parameters"_a, "limit"_a, "Cuts every gradient to [-limit, limit].");
  nb::class_<optim::EMA>(m, "EMA", "An average of a model's weights.")
      .def(nb::init<const nn::Module&, double>(), "model"_a, "decay"_a = 0.999)
      .def("update", &optim::EMA::update, "model"_a, unlocked(),
           "Takes the weights of now into the average.")
      .def("copy_to", &optim::EMA::copy_to, "model"_a, unlocked(), "Gives a model the averages.")
      .def_prop_ro("updates", &optim::EMA::updates, "How many there were.");
  nb::class_<optim::GradScaler>(m, "GradScaler", "Loss scaling for gradients in float16.")
      .def(nb::init<double, std::int64_t>(), "scale"_a = 65536.0, "interval"_a = 2000)
      .def("scale_loss", &optim::GradScaler::scale_loss, "loss"_a, unlocked(),
           "What backward() is to be called on.")
      .def("step", &optim::GradScaler::step, "optimizer"_a, unlocked(),
           "A step with the gradients scaled back; False: left out, because they were not finite.")
      .def_prop_ro("scale", &optim::GradScaler::scale, "The factor of now.");
}

}  // namespace netcl::python
