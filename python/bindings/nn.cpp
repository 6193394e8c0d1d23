// Module: the base of all layers, also of those written in Python.
#include <algorithm>

#include "module_class.h"
#include "netcl/autograd.h"

namespace netcl::python {
namespace {

PythonModule* python_module(nb::handle self) {
  return dynamic_cast<PythonModule*>(nb::inst_ptr<nn::Module>(self));
}

// Modules, and tensors to be trained; what was computed from these is a result.
bool is_part(nb::handle value) {
  if (nb::isinstance<nn::Module>(value)) return true;
  if (!nb::isinstance<Tensor>(value)) return false;
  const auto node = Node::of(nb::cast<const Tensor&>(value));
  return node && node.is_leaf();
}

void set_attribute(nb::handle self, const nb::str& name, nb::handle value) {
  if (!nb::inst_ready(self))
    throw nb::attribute_error("call super().__init__() before assigning attributes of a Module");
  const std::string key = name.c_str();
  if (auto* module = python_module(self)) {
    const bool is_tensor = nb::isinstance<Tensor>(value);
    nb::object dict = self.attr("__dict__");
    if (nb::isinstance<nn::Module>(value)) {
      module->set_child(key, nb::cast<nn::ModulePtr>(value));
      dict.attr("pop")(name, nb::none());
      return;
    }
    if (is_tensor && module->is_buffer(key)) {
      module->set_buffer(key, nb::cast<const Tensor&>(value));
      return;
    }
    if (is_tensor && is_part(value)) {
      module->set_parameter(key, nb::cast<const Tensor&>(value));
      dict.attr("pop")(name, nb::none());
      return;
    }
    module->remove(key);
  } else if (is_part(value) && !nb::hasattr(self.type(), name)) {
    throw ArgumentError("[" + nb::inst_ptr<nn::Module>(self)->type() +
                        "] a layer of netcl's own takes no further parameters or modules: make a "
                        "subclass of Module that has both: '" +
                        key + "'");
  }
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
}

void delete_attribute(nb::handle self, const nb::str& name) {
  auto* module = python_module(self);
  if (module != nullptr && module->remove(name.c_str())) return;
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), nullptr) != 0) throw nb::python_error();
}

// Only asked when there is no ordinary attribute of the name.
nb::object get_attribute(nb::handle self, const std::string& name) {
  if (nb::inst_ready(self)) {
    const auto& module = *nb::inst_ptr<nn::Module>(self);
    if (const auto* own = dynamic_cast<const PythonModule*>(&module))
      if (const auto* tensor = own->find_tensor(name)) return nb::cast(*tensor);
    for (const auto& [child_name, child] : module.children())
      if (child_name == name) return nb::cast(child);
  }
  const auto type = nb::cast<std::string>(self.type().attr("__name__"));
  throw nb::attribute_error(("'" + type + "' has no attribute '" + name + "'").c_str());
}

std::vector<std::pair<std::string, Tensor>> pairs(const std::vector<nn::NamedTensor>& list) {
  std::vector<std::pair<std::string, Tensor>> result;
  for (const auto& one : list) result.emplace_back(one.name, one.tensor);
  return result;
}

nb::dict dict_of(const std::vector<nn::NamedTensor>& list) {
  nb::dict result;
  for (const auto& one : list) result[one.name.c_str()] = one.tensor;
  return result;
}

std::vector<nn::NamedTensor> named_tensors(const nb::dict& state) {
  std::vector<nn::NamedTensor> result;
  const CPUQueue host;
  for (auto [name, value] : state)
    result.push_back({nb::cast<std::string>(name), nb::isinstance<Tensor>(value)
                                                       ? nb::cast<Tensor>(value)
                                                       : tensor_from(value, host)});
  return result;
}

void collect(const nn::Module& module, const std::string& prefix, nb::list& into) {
  for (const auto& [name, child] : module.children()) {
    into.append(nb::make_tuple(prefix + name, child));
    collect(*child, prefix + name + ".", into);
  }
}

void add_attributes(nb::class_<nn::Module, PythonModule>& m) {
  m.def("__setattr__", &set_attribute, "name"_a, "value"_a.none())
      .def("__delattr__", &delete_attribute)
      .def("__getattr__", &get_attribute,
           nb::sig("def __getattr__(self, name: str, /) -> typing.Any"))
      .def(
          "__call__",
          [](nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
            const Tensor* x = nullptr;
            if (args.size() == 1 && nb::try_cast(args[0], x) && x != nullptr)
              nb::cast<nn::Module&>(self).remember_input(*x);
            return nb::object(self.attr("forward")(*args, **kwargs));
          },
          nb::sig("def __call__(self, *args, **kwargs) -> typing.Any"))
      .def("forward", &nn::Module::forward, "x"_a, unlocked(),
           "What a call computes; subclasses define it.")
      .def(
          "register_buffer",
          [](nb::handle self, const std::string& name, const Tensor& tensor) {
            auto* module = python_module(self);
            if (module == nullptr)
              throw ArgumentError("[register_buffer] a layer of netcl's own is fixed");
            module->set_buffer(name, tensor);
          },
          "name"_a, "tensor"_a, "A tensor that belongs to the state but is not trained.")
      .def(
          "register_parameter",
          [](nb::handle self, const std::string& name, Tensor& tensor) {
            auto* module = python_module(self);
            if (module == nullptr)
              throw ArgumentError("[register_parameter] a layer of netcl's own is fixed");
            module->set_parameter(name, tensor.set_requires_grad());
          },
          "name"_a, "tensor"_a,
          "A tensor that is trained; the same as assigning it with requires_grad.");
}

void add_state(nb::class_<nn::Module, PythonModule>& m) {
  m.def("_own_tensors",
        [](nb::handle self) -> nb::object {  // for copies; None: a layer of netcl's own
          const auto* module = python_module(self);
          if (module == nullptr) return nb::none();
          nb::dict parameters, buffers;
          for (const auto& [name, tensor] : module->state_dict())
            if (module->find_tensor(name) != nullptr)
              (module->is_buffer(name) ? buffers : parameters)[name.c_str()] = tensor;
          return nb::make_tuple(parameters, buffers);
        })
      .def("parameters", &nn::Module::parameters, "All that is trained, also of modules inside.")
      .def(
          "named_parameters", [](const nn::Module& x) { return pairs(x.named_parameters()); },
          "(name, tensor) of all that is trained.")
      .def(
          "named_buffers", [](const nn::Module& x) { return pairs(x.named_buffers()); },
          "(name, tensor) of what belongs to the state but is not trained.")
      .def(
          "children",
          [](const nn::Module& x) {
            nb::list result;
            for (const auto& [name, child] : x.children()) result.append(child);
            return result;
          },
          "The modules that it has itself.")
      .def(
          "named_children",
          [](const nn::Module& x) {
            nb::list result;
            for (const auto& [name, child] : x.children())
              result.append(nb::make_tuple(name, child));
            return result;
          },
          "(name, module) of the modules that it has itself.")
      .def(
          "named_modules",
          [](nb::handle self) {
            nb::list result;
            result.append(nb::make_tuple("", self));
            collect(nb::cast<const nn::Module&>(self), "", result);
            return result;
          },
          "(name, module) of itself and all modules inside.")
      .def("parameter_count", &nn::Module::parameter_count,
           "The number of numbers that are trained.")
      .def(
          "state_dict", [](const nn::Module& x) { return dict_of(x.state_dict()); },
          "Parameters and buffers by name; the tensors are the module's own.")
      .def(
          "load_state_dict",
          [](nn::Module& x, const nb::dict& state, bool strict) {
            const auto list = named_tensors(state);
            Unlocked now;
            x.load_state_dict(list, strict);
          },
          "state"_a, "strict"_a = true, "Copies values by name, from tensors or arrays.");
}

void add_modes(nb::class_<nn::Module, PythonModule>& m) {
  m.def(
       "train",
       [](nb::handle self, bool on) {
         nb::cast<nn::Module&>(self).train(on);
         return self;
       },
       "on"_a = true, nb::sig("def train(self, on: bool = True) -> typing.Any"),
       "Training mode: dropout drops, batch norm takes the batch's statistics.")
      .def(
          "eval",
          [](nb::handle self) {
            nb::cast<nn::Module&>(self).eval();
            return self;
          },
          nb::sig("def eval(self) -> typing.Any"), "The same as train(False).")
      .def_prop_ro("training", &nn::Module::is_training, "Whether it is in training mode.")
      .def(
          "to",
          [](nb::handle self, nb::handle where) {
            auto& module = nb::cast<nn::Module&>(self);
            QueueArg queue;
            if (nb::isinstance<nb::str>(where)) {
              const auto selector = nb::cast<std::string>(where);
              Unlocked now;
              module.to(selector);
            } else if (convert(where, queue)) {
              const auto on = queue.get();
              Unlocked now;
              module.to(on);
            } else {
              throw DtypeError("[to] it needs a selector, a queue or a device handle");
            }
            return self;
          },
          "device"_a, nb::sig("def to(self, device: typing.Any) -> typing.Any"),
          "Moves everything; optimisers are to be made afterwards.")
      .def(
          "astype",
          [](nb::handle self, const DTypeArg& dtype) {
            nb::cast<nn::Module&>(self).astype(dtype);
            return self;
          },
          "dtype"_a, nb::sig("def astype(self, dtype: typing.Any) -> typing.Any"),
          "Parameters of another element type; the module itself.")
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            nb::cast<nn::Module&>(self).set_requires_grad(on);
            return self;
          },
          "on"_a = true, nb::sig("def requires_grad_(self, on: bool = True) -> typing.Any"),
          "Whether its parameters are trained; the module itself.")
      .def(
          "kernels",
          [](nn::Module& module, const std::optional<Tensor>& x, bool only_free) {
            Unlocked now;
            auto launches = x ? module.kernels(*x) : module.kernels();
            if (only_free)
              std::erase_if(launches, [](const auto& launch) { return !launch.is_free; });
            return launches;
          },
          "x"_a = nb::none(), "only_free"_a = true,
          "The kernels that forward(x) launches, for Autotuner.add; by default those whose local\n"
          "size can be chosen. Without x for an input like the last one. None on the CPU backend.")
      .def("zero_grad", &nn::Module::zero_grad, "Drops the gradients.")
      .def("describe", &nn::Module::describe, "Its layers as text.")
      .def("__repr__", [](const nn::Module& x) {
        auto text = x.to_string();
        if (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
      });
}

// For (name, launch, global size) in model.kernels(x): autotuner.add(name, launch, global size).
void bind_kernels(nb::module_& m) {
  using nn::KernelLaunch;
  nb::class_<KernelLaunch>(m, "KernelLaunch", "A kernel as a module launched it.")
      .def_ro("name", &KernelLaunch::name)
      .def_ro("kernel", &KernelLaunch::kernel)
      .def_prop_ro("global_size",
                   [](const KernelLaunch& l) { return work_size_to_python(l.global_size); })
      .def_prop_ro("local_size",
                   [](const KernelLaunch& l) { return work_size_to_python(l.local_size); })
      .def_ro("is_free", &KernelLaunch::is_free,
              "The local size is not part of the algorithm: another one may be tried.")
      .def("__iter__",
           [](nb::handle self) {
             const auto& launch = nb::cast<const KernelLaunch&>(self);
             return nb::iter(
                 nb::make_tuple(launch.name, self, work_size_to_python(launch.global_size)));
           })
      .def("__repr__", [](const KernelLaunch& l) {
        return "<netcl.KernelLaunch of '" + l.name + "' " + l.global_size.to_string() + ">";
      });
}

void bind_random(nb::module_& m) {
  m.def("manual_seed", &nn::manual_seed, "seed"_a, "The seed of initial weights and dropout.");
  m.def(
      "random_state",
      [] {
        const auto state = nn::random_state();
        return std::pair(state.seed, state.draws);
      },
      "What set_random_state() takes to draw the same again.");
  m.def(
      "set_random_state",
      [](std::pair<std::uint64_t, std::uint64_t> state) {
        nn::set_random_state({state.first, state.second});
      },
      "state"_a, "Draws go on as they did after random_state().");
}

void bind_init(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("init", "Initial values, in place.");
  m.def("zeros", &nn::init::zeros, "tensor"_a, unlocked(), "Zeros.");
  m.def("ones", &nn::init::ones, "tensor"_a, unlocked(), "Ones.");
  m.def("constant", &nn::init::constant, "tensor"_a, "value"_a, unlocked(),
        "The same value everywhere.");
  m.def("uniform", &nn::init::uniform, "tensor"_a, "low"_a, "high"_a, unlocked(),
        "Uniform in [low, high).");
  m.def("normal", &nn::init::normal, "tensor"_a, "mean"_a = 0.0, "deviation"_a = 1.0, unlocked(),
        "Normal.");
  m.def("kaiming_uniform", &nn::init::kaiming_uniform, "tensor"_a, "slope"_a = 2.23606797749979,
        unlocked(), "Uniform, for layers before a leaky_relu of this slope.");
  m.def("kaiming_normal", &nn::init::kaiming_normal, "tensor"_a, "slope"_a = 0.0, unlocked(),
        "Normal, for layers before a leaky_relu of this slope.");
  m.def("xavier_uniform", &nn::init::xavier_uniform, "tensor"_a, "gain"_a = 1.0, unlocked(),
        "Uniform, by the sizes of both sides of a layer.");
  m.def("xavier_normal", &nn::init::xavier_normal, "tensor"_a, "gain"_a = 1.0, unlocked(),
        "Normal, by the sizes of both sides of a layer.");
}

}  // namespace

void bind_nn(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("nn", "Layers and networks.");
  nb::class_<nn::Module, PythonModule> module(
      m, "Module", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A layer or network. Subclasses define forward(); tensors with requires_grad and modules\n"
      "that are assigned to attributes belong to it.");
  module.def(nb::init<>());
  add_attributes(module);
  add_state(module);
  add_modes(module);
  nb::class_<nn::Sequential, nn::Module>(
      m, "Sequential",
      "One layer after the other.\n\n"
      ">>> model = nc.nn.Sequential(nc.nn.Linear(4, 8), nc.nn.ReLU(), nc.nn.Linear(8, 2))\n"
      ">>> model(nc.Tensor.ones((3, 4))).shape\n(3, 2)\n")
      .def("__init__",
           [](nn::Sequential* self, const nb::args& layers) {
             std::vector<nn::ModulePtr> list;
             nb::object all = layers;
             if (layers.size() == 1 && !nb::isinstance<nn::Module>(layers[0])) all = layers[0];
             for (nb::handle layer : nb::borrow<nb::iterable>(all)) {
               if (!nb::isinstance<nn::Module>(layer))
                 throw DtypeError("[Sequential] layers must be modules: " +
                                  nb::cast<std::string>(nb::repr(layer)));
               list.push_back(nb::cast<nn::ModulePtr>(layer));
             }
             new (self) nn::Sequential(std::move(list));
           })
      .def("append", &nn::Sequential::append, "layer"_a, "Another layer at the end.")
      .def("__len__", [](const nn::Sequential& s) { return s.children().size(); })
      .def("__getitem__", [](const nn::Sequential& s, std::int64_t index) {
        const auto size = static_cast<std::int64_t>(s.children().size());
        if (index < -size || index >= size) throw nb::index_error("no such layer");
        return s.children()[static_cast<std::size_t>(index < 0 ? index + size : index)].second;
      });
  bind_kernels(m);
  bind_random(m);
  bind_init(m);
  m.def(
      "save_onnx",
      [](const Path& path, nn::Module& model, const Tensor& example, std::vector<float> scale,
         std::vector<float> shift, const std::map<std::string, std::string>& metadata) {
        nn::OnnxOptions options{std::move(scale), std::move(shift), {}};
        options.metadata.assign(metadata.begin(), metadata.end());
        nn::save_onnx(path.string(), model, example, options);
      },
      "path"_a, "model"_a, "example"_a, "scale"_a = std::vector<float>{},
      "shift"_a = std::vector<float>{}, "metadata"_a = std::map<std::string, std::string>{},
      unlocked(),
      "A model as an ONNX file, for inputs like `example` with any batch size. Layers of Python\n"
      "cannot be written.");
  m.def("from_json", &nn::from_json, "text"_a, unlocked(), "A network from its description.");
  m.def("to_json", &nn::to_json, "module"_a,
        "The description of a network of netcl's own layers, for from_json().");
}

}  // namespace netcl::python
