// Tapes and gradients.
#include "netcl/autograd.h"

#include "common.h"

namespace netcl::python {
namespace {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// A function of Python that takes tensors and returns one or several.
TensorFunction tensor_function(nb::object function) {
  const Callback callback(std::move(function));
  return [callback](const std::vector<Tensor>& inputs) {
    nb::gil_scoped_acquire lock;
    nb::list args;
    for (const auto& input : inputs) args.append(input);
    const nb::object result = callback.function()(*args);
    if (nb::isinstance<Tensor>(result)) return std::vector<Tensor>{nb::cast<Tensor>(result)};
    return tensors_of(result);
  };
}

nb::object one_or_list(const std::vector<Tensor>& tensors) {
  return tensors.size() == 1 ? nb::cast(tensors.front()) : nb::cast(tensors);
}

// Records from `with` (or start()) on; the library's tape begins with its construction.
class PythonTape {
 public:
  PythonTape() = default;
  PythonTape(const PythonTape&) = delete;
  PythonTape& operator=(const PythonTape&) = delete;
  Tape& tape() {
    if (!tape_) throw ArgumentError("[Tape] nothing was recorded: use `with Tape() as tape:`");
    return *tape_;
  }
  void start() {
    if (tape_)
      tape_->start();
    else
      tape_ = std::make_unique<Tape>();
  }
  void stop() {
    if (tape_) tape_->stop();
  }
  bool is_recording() const { return tape_ && tape_->is_recording(); }

 private:
  std::unique_ptr<Tape> tape_;
};

void bind_node(nb::module_& m) {
  nb::class_<Node>(m, "Node", "How a followed value came to be.")
      .def_static(
          "of",
          [](const Tensor& tensor) {
            const auto node = Node::of(tensor);
            return node ? nb::cast(node) : nb::object(nb::none());
          },
          "tensor"_a, "What made a tensor, or None.")
      .def(
          "__eq__", [](const Node& a, const Node& b) { return a == b; }, nb::is_operator())
      .def_prop_ro("op_name", &Node::op_name)
      .def_prop_ro("is_leaf", &Node::is_leaf)
      .def_prop_ro("id", &Node::id)
      .def_prop_ro("parents", &Node::parents)
      .def_prop_ro("where", &Node::where)
      .def_prop_ro("grad", [](const Node& node) { return tensor_or_none(node.grad()); })
      .def("__repr__", [](const Node& node) {
        return "<netcl.Node " + (node.is_leaf() ? std::string("leaf") : node.op_name()) + ">";
      });
}

void bind_tape(nb::module_& m) {
  nb::class_<PythonTape>(m, "Tape",
                         "Follows ops on tensors that require gradients.\n\n"
                         ">>> w = nc.Tensor([2.0], requires_grad=True)\n"
                         ">>> with nc.autograd.Tape() as tape:\n"
                         "...     loss = (w * w).sum()\n"
                         ">>> tape.backward(loss)\n"
                         ">>> w.grad.tolist()\n[4.0]\n")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<PythonTape&>(self).start();
            return self;
          },
          nb::sig("def __enter__(self) -> Tape"))
      .def("__exit__", [](PythonTape& self, nb::args) { self.stop(); })
      .def("start", &PythonTape::start, "Records from now on, as `with` does.")
      .def("stop", &PythonTape::stop, "Ends the recording.")
      .def(
          "reset", [](PythonTape& self) { self.tape().reset(); }, "Frees what was recorded.")
      .def_prop_ro("is_recording", &PythonTape::is_recording)
      .def(
          "backward",
          [](PythonTape& self, const Tensor& loss, const std::optional<Tensor>& grad, bool retain,
             bool create_graph) {
            auto& tape = self.tape();
            Unlocked now;
            tape.backward(loss, grad.value_or(Tensor()), {retain, create_graph});
          },
          "loss"_a, "grad"_a = nb::none(), "retain"_a = true, "create_graph"_a = false,
          "Adds the gradients of `loss` to the `grad` of every leaf that it depends on.")
      .def(
          "gradient",
          [](PythonTape& self, const Tensor& of, nb::object inputs,
             const std::optional<Tensor>& grad, bool retain, bool create_graph) {
            auto& tape = self.tape();
            const bool is_one = nb::isinstance<Tensor>(inputs);
            const auto list =
                is_one ? std::vector<Tensor>{nb::cast<Tensor>(inputs)} : tensors_of(inputs);
            std::vector<Tensor> result;
            {
              Unlocked now;
              result = tape.gradient(of, list, grad.value_or(Tensor()), {retain, create_graph});
            }
            return is_one ? nb::cast(result.front()) : nb::cast(result);
          },
          "of"_a, "inputs"_a, "grad"_a = nb::none(), "retain"_a = true, "create_graph"_a = false,
          "The gradients with respect to `inputs` as a result; no `grad` changes.")
      .def(
          "nodes", [](PythonTape& self) { return self.tape().nodes(); },
          "What was recorded, in order.")
      .def("__str__", [](PythonTape& self) { return self.tape().to_string(); });
}

void bind_gradcheck(nb::module_& m) {
  nb::class_<GradcheckResult>(m, "GradcheckResult",
                              "Whether gradients are right, and the worst of them; true if so.")
      .def_ro("ok", &GradcheckResult::ok)
      .def_ro("worst", &GradcheckResult::worst)
      .def_ro("message", &GradcheckResult::message)
      .def("__bool__", [](const GradcheckResult& r) { return r.ok; })
      .def("__repr__", [](const GradcheckResult& r) {
        return "GradcheckResult(ok=" + std::string(r.ok ? "True" : "False") + ", message='" +
               r.message + "')";
      });
  m.def(
      "gradcheck",
      [](nb::object fn, nb::object inputs, double step, double rtol, double atol,
         std::size_t max_elements, bool second_order) {
        const auto function = tensor_function(std::move(fn));
        const auto list = nb::isinstance<Tensor>(inputs)
                              ? std::vector<Tensor>{nb::cast<Tensor>(inputs)}
                              : tensors_of(inputs);
        const GradcheckOptions options{step, rtol, atol, max_elements, 0, second_order};
        Unlocked now;
        return gradcheck(function, list, options);
      },
      "fn"_a, "inputs"_a, "step"_a = 1e-6, "rtol"_a = 1e-5, "atol"_a = 1e-6, "max_elements"_a = 64,
      "second_order"_a = false, "Compares gradients with central differences, in float64.");
  m.def(
      "checkpoint",
      [](nb::object fn, const nb::args& inputs) {
        const auto function = tensor_function(std::move(fn));
        const auto list = tensors_of(inputs);
        std::vector<Tensor> result;
        {
          Unlocked now;
          result = checkpoint(function, list);
        }
        return one_or_list(result);
      },
      "fn"_a, "inputs"_a, "fn(*inputs), computed again for the gradient instead of being kept.");
}

// Where the Python program called: the innermost frame outside the package.
std::string python_caller() {
  const auto text = [](const nb::object& object) { return nb::cast<std::string>(nb::str(object)); };
  nb::gil_scoped_acquire lock;
  nb::object frame = nb::module_::import_("sys").attr("_getframe")(0);
  while (!frame.is_none()) {
    const auto module = text(frame.attr("f_globals").attr("get")("__name__", ""));
    if (module != "netcl" && module.rfind("netcl.", 0) != 0) break;
    frame = frame.attr("f_back");
  }
  if (frame.is_none()) return {};
  const nb::object code = frame.attr("f_code");
  return text(code.attr("co_filename")) + ":" + text(frame.attr("f_lineno")) + " in " +
         text(code.attr("co_name"));
}

void bind_apply(nb::module_& m) {
  m.def(
      "apply_op",
      [](const std::string& name, nb::object forward, nb::object backward, const nb::args& inputs) {
        const auto function = tensor_function(std::move(forward));
        const Callback callback(std::move(backward));
        const ApplyBackward gradient = [callback](const ApplyContext& context) {
          nb::gil_scoped_acquire lock;
          nb::list grads;
          for (const auto& grad : context.grads) grads.append(tensor_or_none(grad));
          nb::object result =
              callback.function()(nb::cast(context.inputs), nb::cast(context.outputs), grads);
          if (nb::isinstance<Tensor>(result)) result = nb::make_tuple(result);
          std::vector<Tensor> list;
          for (nb::handle one : nb::borrow<nb::iterable>(result))
            list.push_back(one.is_none() ? Tensor() : nb::cast<Tensor>(one));
          return list;
        };
        const auto list = tensors_of(inputs);
        std::vector<Tensor> result;
        {
          Unlocked now;
          result = apply_op(name, function, gradient, list);
        }
        return one_or_list(result);
      },
      "name"_a, "forward"_a, "backward"_a, "inputs"_a,
      "forward(*inputs) with a gradient of your own: backward(inputs, outputs, grads) gives one\n"
      "gradient, or None, per input.");
}

}  // namespace

void bind_autograd(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("autograd", "Gradients.");
  bind_node(m);
  bind_tape(m);
  bind_gradcheck(m);
  bind_apply(m);
  m.def("is_grad_enabled", &is_grad_enabled, "False inside no_grad().");
  m.def("set_grad_enabled", &set_grad_enabled, "on"_a,
        "For this thread; no_grad() restores what was before.");
  m.def("is_anomaly_detected", &is_anomaly_detected);
  m.def(
      "set_detect_anomaly",
      [](bool on) {
        if (on) set_caller_description(python_caller);
        set_detect_anomaly(on);
      },
      "on"_a);
  m.def("retain_grad", &retain_grad, "value"_a, "Keeps the gradient of a value on the way too.");
}

}  // namespace netcl::python
