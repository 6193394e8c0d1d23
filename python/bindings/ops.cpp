// Element-wise ops, reductions, indexing: the functions of netcl.ops and methods of Tensor.
#include <chrono>

#include "common.h"
#include "netcl/nn.h"

namespace netcl::python {
namespace {

using Unary = Tensor (*)(const Tensor&);
struct UnaryOp {
  const char* name;
  Unary function;
};
constexpr UnaryOp kUnary[] = {
    {"neg", &ops::neg},
    {"abs", &ops::abs},
    {"sign", &ops::sign},
    {"square", &ops::square},
    {"reciprocal", &ops::reciprocal},
    {"floor", &ops::floor},
    {"ceil", &ops::ceil},
    {"round", &ops::round},
    {"exp", &ops::exp},
    {"expm1", &ops::expm1},
    {"log", &ops::log},
    {"log1p", &ops::log1p},
    {"sqrt", &ops::sqrt},
    {"rsqrt", &ops::rsqrt},
    {"sin", &ops::sin},
    {"cos", &ops::cos},
    {"erf", &ops::erf},
    {"relu", &ops::relu},
    {"sigmoid", &ops::sigmoid},
    {"tanh", &ops::tanh},
    {"silu", &ops::silu},
    {"swish", &ops::swish},
    {"softplus", &ops::softplus},
    {"mish", &ops::mish},
    {"hard_sigmoid", &ops::hard_sigmoid},
    {"hard_swish", &ops::hard_swish},
    {"logical_not", &ops::logical_not},
    {"isnan", &ops::isnan},
    {"isinf", &ops::isinf},
    {"isfinite", &ops::isfinite},
};

using Binary = Tensor (*)(const ops::Operand&, const ops::Operand&);
struct BinaryOp {
  const char* name;
  Binary function;
};
constexpr BinaryOp kBinary[] = {
    {"add", &ops::add},
    {"sub", &ops::sub},
    {"mul", &ops::mul},
    {"div", &ops::div},
    {"pow", &ops::pow},
    {"maximum", &ops::maximum},
    {"minimum", &ops::minimum},
    {"eq", &ops::eq},
    {"ne", &ops::ne},
    {"lt", &ops::lt},
    {"le", &ops::le},
    {"gt", &ops::gt},
    {"ge", &ops::ge},
    {"logical_and", &ops::logical_and},
    {"logical_or", &ops::logical_or},
    {"logical_xor", &ops::logical_xor},
};

using Reduce = Tensor (*)(const Tensor&, const ops::Axes&, bool);
struct ReduceOp {
  const char* name;
  Reduce function;
};
constexpr ReduceOp kReduce[] = {
    {"sum", &ops::sum},
    {"mean", &ops::mean},
    {"max", &ops::max},
    {"min", &ops::min},
    {"prod", &ops::prod},
    {"logsumexp", &ops::logsumexp},
    {"reduce_sum", &ops::reduce_sum},
};

Tensor apply_binary(Binary op, const OperandArg& a, const OperandArg& b) {
  const auto queue = queue_of(a, b);
  const auto left = operand(a, queue), right = operand(b, queue);
  if (left.is_number() && right.is_number())
    throw DtypeError("[ops] at least one operand must be a tensor");
  Unlocked now;
  return op(left, right);
}

// Both a module and a class take these, the class as methods.
template <class Scope>
void add_shared(Scope& scope) {
  for (const auto& op : kUnary) scope.def(op.name, op.function, "x"_a, unlocked());
  for (const auto& op : kReduce)
    scope.def(
        op.name,
        [f = op.function](const Tensor& x, const AxesArg& axis, bool keepdims) {
          return f(x, axis.axes, keepdims);
        },
        "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked());
  scope.def(
      "var",
      [](const Tensor& x, const AxesArg& axis, bool keepdims, double correction) {
        return ops::var(x, axis.axes, keepdims, correction);
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, "correction"_a = 1.0, unlocked());
  scope.def("argmax", &ops::argmax, "x"_a, "axis"_a = -1, "keepdims"_a = false, unlocked());
  scope.def("argmin", &ops::argmin, "x"_a, "axis"_a = -1, "keepdims"_a = false, unlocked());
  scope.def("softmax", &ops::softmax, "x"_a, "axis"_a = -1, unlocked());
  scope.def("log_softmax", &ops::log_softmax, "x"_a, "axis"_a = -1, unlocked());
  scope.def("cumsum", &ops::cumsum, "x"_a, "axis"_a = -1, unlocked());
  scope.def("clamp", &ops::clamp, "x"_a, "min"_a, "max"_a, unlocked());
  scope.def("leaky_relu", &ops::leaky_relu, "x"_a, "slope"_a = 0.01, unlocked());
  scope.def("elu", &ops::elu, "x"_a, "alpha"_a = 1.0, unlocked());
  scope.def("hard_tanh", &ops::hard_tanh, "x"_a, "min"_a = -1.0, "max"_a = 1.0, unlocked());
  scope.def("gelu", &ops::gelu, "x"_a, "tanh_form"_a = false, unlocked());
  scope.def("matmul", &ops::matmul, "a"_a, "b"_a, unlocked());
  scope.def("topk", &ops::topk, "x"_a, "k"_a, "axis"_a = -1, "largest"_a = true, unlocked());
  scope.def("tril", &ops::tril, "x"_a, "diagonal"_a = 0, unlocked());
  scope.def("triu", &ops::triu, "x"_a, "diagonal"_a = 0, unlocked());
  scope.def("index_select", &ops::index_select, "x"_a, "axis"_a, "indices"_a, unlocked());
  scope.def("gather", &ops::gather, "x"_a, "axis"_a, "indices"_a, unlocked());
}

void bind_elementwise(nb::module_& m) {
  for (const auto& op : kBinary)
    m.def(
        op.name,
        [f = op.function](const OperandArg& a, const OperandArg& b) {
          return apply_binary(f, a, b);
        },
        "a"_a, "b"_a);
  m.def(
      "prelu",
      [](const Tensor& x, const OperandArg& slope) {
        const auto value = operand(slope, x.queue());
        Unlocked now;
        return ops::prelu(x, value);
      },
      "x"_a, "slope"_a);
  m.def(
      "where",
      [](const Tensor& condition, const OperandArg& a, const OperandArg& b) {
        const auto left = operand(a, condition.queue()), right = operand(b, condition.queue());
        Unlocked now;
        return ops::where(condition, left, right);
      },
      "condition"_a, "a"_a, "b"_a);
  m.def(
      "cast", [](const Tensor& x, const DTypeArg& dtype) { return ops::cast(x, dtype); }, "x"_a,
      "dtype"_a, unlocked(), "Saturates; NaN to a whole number is 0.");
  m.def(
      "relu_", [](const Tensor& x) { return Tensor(ops::relu_(x)); }, "x"_a, unlocked());
  m.def(
      "clamp_",
      [](const Tensor& x, double min, double max) { return Tensor(ops::clamp_(x, min, max)); },
      "x"_a, "min"_a, "max"_a, unlocked());
  m.def(
      "fill_", [](const Tensor& x, double value) { return Tensor(ops::fill_(x, value)); }, "x"_a,
      "value"_a, unlocked());
  m.def("elementwise_binary", &ops::elementwise_binary, "a"_a, "b"_a, "expression"_a, unlocked(),
        "An expression over v0 and v1 with the macros of PRIMITIVE_PREAMBLE.\n\n"
        ">>> x = nc.Tensor([1.0, 2.0])\n"
        ">>> nc.elementwise_binary(x, x, \"MUL(ADD(v0, v1), 2.0f)\").tolist()\n[4.0, 8.0]\n");
  m.def(
      "dropout",
      [](const Tensor& x, double p, std::optional<std::uint64_t> seed) {
        return ops::dropout(x, p, seed ? *seed : nn::next_seed());
      },
      "x"_a, "p"_a, "seed"_a = nb::none(), unlocked());
}

}  // namespace

void add_op_methods(nb::class_<Tensor>& tensor) {
  // The first argument of a method has no name.
  for (const auto& op : kUnary) tensor.def(op.name, op.function, unlocked());
  for (const auto& op : kReduce)
    tensor.def(
        op.name,
        [f = op.function](const Tensor& x, const AxesArg& axis, bool keepdims) {
          return f(x, axis.axes, keepdims);
        },
        "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked());
  tensor
      .def(
          "var",
          [](const Tensor& x, const AxesArg& axis, bool keepdims, double correction) {
            return ops::var(x, axis.axes, keepdims, correction);
          },
          "axis"_a.none() = nb::none(), "keepdims"_a = false, "correction"_a = 1.0, unlocked())
      .def("argmax", &ops::argmax, "axis"_a = -1, "keepdims"_a = false, unlocked())
      .def("argmin", &ops::argmin, "axis"_a = -1, "keepdims"_a = false, unlocked())
      .def("softmax", &ops::softmax, "axis"_a = -1, unlocked())
      .def("log_softmax", &ops::log_softmax, "axis"_a = -1, unlocked())
      .def("cumsum", &ops::cumsum, "axis"_a = -1, unlocked())
      .def("clamp", &ops::clamp, "min"_a, "max"_a, unlocked())
      .def("gelu", &ops::gelu, "tanh_form"_a = false, unlocked())
      .def("matmul", &ops::matmul, "other"_a, unlocked())
      .def("topk", &ops::topk, "k"_a, "axis"_a = -1, "largest"_a = true, unlocked())
      .def(
          "fill_",
          [](nb::handle self, double value) {
            const auto& x = nb::cast<const Tensor&>(self);
            Unlocked now;
            ops::fill_(x, value);
            return self;
          },
          "value"_a, nb::sig("def fill_(self, value: float) -> Tensor"));
}

// Seconds per call of a unary op without Python in between, for bench/python_overhead.py.
double time_unary(const std::string& name, const Tensor& x, int count) {
  for (const auto& op : kUnary) {
    if (op.name != name) continue;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) op.function(x);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return passed.count() / count;
  }
  throw ArgumentError("[time_unary] there is no such op: " + name);
}

void bind_ops(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("ops", "Operations on tensors.");
  add_shared(m);
  bind_elementwise(m);
  m.def("_time_unary", &time_unary, "name"_a, "x"_a, "count"_a, unlocked());
}

}  // namespace netcl::python
