// Fusion, primitives of the user, recorded steps.
#include "netcl/jit.h"

#include "common.h"
#include "netcl/capture.h"
#include "netcl/primitive.h"

namespace netcl::python {
namespace {

// `with fused():` of Python.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  void enter() { scopes_.push_back(std::make_unique<FusionScope>()); }
  void leave(bool failed) {
    if (scopes_.empty()) return;
    if (!failed) {
      Unlocked now;
      scopes_.back()->finish();
    }
    scopes_.pop_back();
  }

 private:
  std::vector<std::unique_ptr<FusionScope>> scopes_;
};

void bind_fusion(nb::module_& m) {
  nb::class_<Scope>(m, "FusionScope",
                    "Inside `with FusionScope():` chains of ops become one kernel.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<Scope&>(self).enter();
            return self;
          },
          nb::sig("def __enter__(self) -> FusionScope"))
      .def(
          "__exit__",
          [](Scope& self, nb::handle type, nb::handle, nb::handle) { self.leave(!type.is_none()); },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  nb::class_<FusionStats>(m, "FusionStats", "What fusion did so far.")
      .def_ro("deferred", &FusionStats::deferred)
      .def_ro("groups", &FusionStats::groups)
      .def_ro("launches", &FusionStats::launches)
      .def_ro("fused_nodes", &FusionStats::fused_nodes)
      .def_ro("compiled", &FusionStats::compiled)
      .def_ro("fallbacks", &FusionStats::fallbacks);
  m.def("fusion_stats", &fusion_stats, "What fusion did so far in this process.");
  nb::class_<FusedGroup>(m, "FusedGroup", "One kernel of a fused function.")
      .def_ro("ops", &FusedGroup::ops)
      .def_ro("inputs", &FusedGroup::inputs)
      .def_ro("outputs", &FusedGroup::outputs)
      .def_ro("bytes_read", &FusedGroup::bytes_read)
      .def_ro("bytes_written", &FusedGroup::bytes_written)
      .def_ro("source", &FusedGroup::source)
      .def_ro("reason", &FusedGroup::reason);
  nb::class_<Explanation>(m, "Explanation", "How a function is computed.")
      .def_ro("groups", &Explanation::groups)
      .def("to_string", &Explanation::to_string, "with_source"_a = false,
           "The groups as text, with the sources of their kernels if asked.")
      .def("__str__", [](const Explanation& e) { return e.to_string(); });
  m.def(
      "explain",
      [](nb::object function, const nb::args& args, const nb::kwargs& kwargs) {
        nb::object kept;  // results that nobody sees would not be computed
        return explain_call([&] {
          FusionScope scope;
          kept = function(*args, **kwargs);
          scope.finish();
        });
      },
      "function"_a, "args"_a, "kwargs"_a, "Runs a function and tells how it was computed.");
}

AutogradPrimitive make_primitive(const std::string& name, nb::object forward, nb::object backward,
                                 int arity, bool fusible, const std::string& source) {
  const Callback write(std::move(forward));
  AutogradPrimitive primitive{
      name,
      [write](const PrimitiveArgs& args, const PrimitiveAttributes& attrs) {
        nb::gil_scoped_acquire lock;
        return nb::cast<std::string>(write.function()(nb::cast(args), nb::cast(attrs)));
      },
      nullptr,
      arity,
      fusible,
      source};
  if (backward.is_none()) return primitive;
  const Callback gradient(std::move(backward));
  primitive.backward = [gradient](const PrimitiveArgs& args, const std::string& grad_var,
                                  const PrimitiveAttributes& attrs, const std::string& out_var) {
    nb::gil_scoped_acquire lock;
    const nb::object result =
        gradient.function()(nb::cast(args), grad_var, nb::cast(attrs), out_var);
    if (nb::isinstance<nb::str>(result))
      return std::vector<std::string>{nb::cast<std::string>(result)};
    std::vector<std::string> expressions;
    for (nb::handle one : nb::borrow<nb::iterable>(result))
      expressions.push_back(one.is_none() ? std::string() : nb::cast<std::string>(one));
    return expressions;
  };
  return primitive;
}

void bind_primitives(nb::module_& m) {
  m.def(
      "register_primitive",
      [](const std::string& name, nb::object forward, nb::object backward, int arity, bool fusible,
         const std::string& source, bool replace) {
        auto primitive =
            make_primitive(name, std::move(forward), std::move(backward), arity, fusible, source);
        Unlocked now;
        register_primitive(std::move(primitive), replace);
      },
      "name"_a, "forward"_a, "backward"_a = nb::none(), "arity"_a = 1, "fusible"_a = true,
      "source"_a = "", "replace"_a = false,
      "An element-wise op of your own: forward(args, attrs) writes an expression, and\n"
      "backward(args, grad_var, attrs, out_var) one per operand.");
  m.def(
      "unregister_primitive", [](const std::string& name) { return unregister_primitive(name); },
      "name"_a, unlocked(), "Forgets a primitive; False if there was none.");
  m.def(
      "has_primitive", [](const std::string& name) { return has_primitive(name); }, "name"_a,
      unlocked(), "Whether there is a primitive of this name.");
  m.def("primitive_names", &primitive_names, unlocked(), "All that are registered.");
  m.def(
      "call_primitive",
      [](const std::string& name, const nb::args& operands, const nb::kwargs& attrs) {
        std::vector<OperandArg> args;
        Queue queue;
        for (nb::handle one : operands) {
          OperandArg arg;
          if (!convert(one, arg))
            throw DtypeError("[" + name + "] operands must be tensors, arrays or numbers");
          if (arg.is_tensor && !queue) queue = nb::cast<const Tensor&>(one).queue();
          args.push_back(arg);
        }
        if (!queue) queue = get_active_device().queue;
        std::vector<ops::Operand> list;
        for (const auto& arg : args) list.push_back(operand(arg, queue));
        PrimitiveAttributes values;
        for (auto [key, value] : attrs)
          values[nb::cast<std::string>(key)] = nb::cast<double>(value);
        Unlocked now;
        return call_primitive(name, list, values);
      },
      "name"_a, "operands"_a, "attrs"_a, "Calls a registered primitive.");
}

void bind_capture(nb::module_& m) {
  nb::class_<CaptureStats>(m, "CaptureStats", "What a recorded step did so far.")
      .def_ro("eager_calls", &CaptureStats::eager_calls)
      .def_ro("captures", &CaptureStats::captures)
      .def_ro("replays", &CaptureStats::replays)
      .def_ro("kept", &CaptureStats::kept)
      .def_ro("commands", &CaptureStats::commands)
      .def_ro("launches", &CaptureStats::launches)
      .def_ro("bytes", &CaptureStats::bytes);
  nb::class_<CapturedStep>(
      m, "CapturedStep", "A step of fixed shapes, recorded once and then sent to the device again.")
      .def(
          "__init__",
          [](CapturedStep* self, nb::object function) {
            const Callback callback(std::move(function));
            new (self) CapturedStep([callback](const std::vector<Tensor>& inputs) {
              nb::gil_scoped_acquire lock;
              nb::list args;
              for (const auto& input : inputs) args.append(input);
              const nb::object result = callback.function()(*args);
              if (result.is_none()) return std::vector<Tensor>{};
              if (nb::isinstance<Tensor>(result))
                return std::vector<Tensor>{nb::cast<Tensor>(result)};
              return tensors_of(result);
            });
          },
          "function"_a)
      .def("__call__",
           [](CapturedStep& step, const nb::args& inputs) -> nb::object {
             const auto list = tensors_of(inputs);
             std::vector<Tensor> result;
             {
               Unlocked now;
               result = step(list);
             }
             if (result.empty()) return nb::none();
             return result.size() == 1 ? nb::cast(result.front()) : nb::cast(result);
           })
      // Another thread may hold the step while it runs a function of Python.
      .def("why_not", &CapturedStep::why_not, unlocked(),
           "Why calls like the latest are not replayed; empty when they are, or will be.")
      .def("stats", &CapturedStep::stats, unlocked(), "How often it was recorded and replayed.")
      .def("wait", &CapturedStep::wait, unlocked(), "Until the work of the latest call is done.")
      .def("clear", &CapturedStep::clear, unlocked(),
           "Forgets all recordings; results that were handed out stay valid.");
}

}  // namespace

void bind_jit(nb::module_& parent) {
  nb::module_ m = nb::borrow<nb::module_>(parent.attr("autograd"));
  bind_fusion(m);
  bind_primitives(m);
  bind_capture(m);
}

}  // namespace netcl::python
