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
  const char* doc;
};
constexpr UnaryOp kUnary[] = {
    {"neg", &ops::neg, "-x."},
    {"abs", &ops::abs, "The absolute value."},
    {"sign", &ops::sign, "-1, 0 or 1."},
    {"square", &ops::square, "x * x."},
    {"reciprocal", &ops::reciprocal, "1 / x."},
    {"floor", &ops::floor, "Down to a whole number."},
    {"ceil", &ops::ceil, "Up to a whole number."},
    {"round", &ops::round, "To the nearest whole number, halves to the even one."},
    {"exp", &ops::exp, "e to the power of x."},
    {"expm1", &ops::expm1, "exp(x) - 1, exact near 0."},
    {"log", &ops::log, "The natural logarithm."},
    {"log1p", &ops::log1p, "log(1 + x), exact near 0."},
    {"sqrt", &ops::sqrt, "The square root."},
    {"rsqrt", &ops::rsqrt, "1 / sqrt(x)."},
    {"sin", &ops::sin, "The sine."},
    {"cos", &ops::cos, "The cosine."},
    {"erf", &ops::erf, "The error function."},
    {"relu", &ops::relu,
     "The larger of x and 0; NaN stays NaN.\n\n>>> nc.relu(nc.Tensor([-1.0, 2.0])).tolist()\n[0.0, "
     "2.0]\n"},
    {"sigmoid", &ops::sigmoid, "1 / (1 + exp(-x))."},
    {"tanh", &ops::tanh, "The hyperbolic tangent."},
    {"silu", &ops::silu, "x * sigmoid(x)."},
    {"swish", &ops::swish, "Another name of silu."},
    {"softplus", &ops::softplus, "log(1 + exp(x))."},
    {"mish", &ops::mish, "x * tanh(softplus(x))."},
    {"hard_sigmoid", &ops::hard_sigmoid, "clamp(x / 6 + 1 / 2, 0, 1)."},
    {"hard_swish", &ops::hard_swish, "x * hard_sigmoid(x)."},
    {"logical_not", &ops::logical_not, "True where x is 0."},
    {"isnan", &ops::isnan, "True where x is NaN."},
    {"isinf", &ops::isinf, "True where x is infinite."},
    {"isfinite", &ops::isfinite, "True where x is neither NaN nor infinite."},
};

using Binary = Tensor (*)(const ops::Operand&, const ops::Operand&);
struct BinaryOp {
  const char* name;
  Binary function;
  const char* doc;
};
constexpr BinaryOp kBinary[] = {
    {"add", &ops::add, "a + b."},
    {"sub", &ops::sub, "a - b."},
    {"mul", &ops::mul, "a * b."},
    {"div", &ops::div, "a / b; of whole numbers in floating point."},
    {"pow", &ops::pow, "a to the power of b."},
    {"maximum", &ops::maximum, "The larger of each pair; NaN where one is NaN."},
    {"minimum", &ops::minimum, "The smaller of each pair; NaN where one is NaN."},
    {"eq", &ops::eq, "True where a == b."},
    {"ne", &ops::ne, "True where a != b."},
    {"lt", &ops::lt, "True where a < b."},
    {"le", &ops::le, "True where a <= b."},
    {"gt", &ops::gt, "True where a > b."},
    {"ge", &ops::ge, "True where a >= b."},
    {"logical_and", &ops::logical_and, "True where neither is 0."},
    {"logical_or", &ops::logical_or, "True where one is not 0."},
    {"logical_xor", &ops::logical_xor, "True where exactly one is not 0."},
};

using Reduce = Tensor (*)(const Tensor&, const ops::Axes&, bool);
struct ReduceOp {
  const char* name;
  Reduce function;
  const char* doc;
};
constexpr ReduceOp kReduce[] = {
    {"sum", &ops::sum,
     "The sum over all elements, or over an axis or several.\n\n>>> nc.Tensor([[1.0, 2.0], [3.0, "
     "4.0]]).sum(axis=0).tolist()\n[4.0, 6.0]\n"},
    {"mean", &ops::mean, "The average."},
    {"max", &ops::max, "The largest; NaN if there is one."},
    {"min", &ops::min, "The smallest; NaN if there is one."},
    {"prod", &ops::prod, "The product."},
    {"logsumexp", &ops::logsumexp, "log(sum(exp(x))), without overflow."},
    {"reduce_sum", &ops::reduce_sum, "Another name of sum."},
};

Tensor apply_binary(Binary op, const OperandArg& a, const OperandArg& b) {
  const auto [left, right] = operands(a, b);
  if (left.is_number() && right.is_number())
    throw DtypeError("[ops] at least one operand must be a tensor");
  Unlocked now;
  return op(left, right);
}

Tensor std_of(const Tensor& x, const AxesArg& axis, bool keepdims, double correction) {
  return ops::sqrt(ops::var(x, axis.axes, keepdims, correction));
}
Tensor all_of(const Tensor& x, const AxesArg& axis, bool keepdims) {
  return ops::eq(ops::sum(ops::logical_not(x), axis.axes, keepdims), 0);
}
Tensor any_of(const Tensor& x, const AxesArg& axis, bool keepdims) {
  return ops::ne(ops::sum(ops::ne(x, 0), axis.axes, keepdims), 0);
}
Tensor clamped(const Tensor& x, std::optional<double> min, std::optional<double> max) {
  if (min && max) return ops::clamp(x, *min, *max);
  if (!min && !max) throw ArgumentError("[clamp] it needs min, max or both");
  return min ? ops::maximum(x, *min) : ops::minimum(x, *max);
}

// Of ops that are functions and methods.
constexpr struct {
  const char* var = "The variance; correction 1 divides by n - 1.";
  const char* argmax = "The place of the largest along an axis, the first of equal ones.";
  const char* argmin = "The place of the smallest along an axis, the first of equal ones.";
  const char* softmax =
      "exp(x) / sum(exp(x)) along an axis.\n\n>>> nc.softmax(nc.Tensor([0.0, "
      "0.0])).tolist()\n[0.5, 0.5]\n";
  const char* log_softmax = "log(softmax(x)) along an axis.";
  const char* cumsum = "Sums of all elements up to each, along an axis.";
  const char* clamp = "Not below min, not above max, of which one may be None.";
  const char* std = "The square root of the variance; correction 1 divides by n - 1.";
  const char* all = "Whether no element is 0, over all or over an axis or several.";
  const char* any = "Whether some element is not 0, over all or over an axis or several.";
  const char* leaky_relu = "x where it is positive, else slope * x.";
  const char* elu = "x where it is positive, else alpha * (exp(x) - 1).";
  const char* hard_tanh = "clamp(x, min, max).";
  const char* gelu = "x times the normal distribution's share below x; tanh_form approximates it.";
  const char* matmul =
      "(..., M, K) @ (..., K, N); leading axes broadcast.\n\n>>> nc.matmul(nc.Tensor([[1.0, "
      "2.0]]), nc.Tensor([[3.0], [4.0]])).tolist()\n[[11.0]]\n";
  const char* topk =
      "The k largest (or smallest) values along an axis, in order, and their places.";
  const char* tril = "The lower triangle; 0 elsewhere.";
  const char* triu = "The upper triangle; 0 elsewhere.";
  const char* index_select = "Whole slices along an axis, by their indices.";
  const char* gather = "One element along an axis for each index.";
} kDoc;

// Both a module and a class take these, the class as methods.
template <class Scope>
void add_shared(Scope& scope) {
  for (const auto& op : kUnary) scope.def(op.name, op.function, "x"_a, unlocked(), op.doc);
  for (const auto& op : kReduce)
    scope.def(
        op.name,
        [f = op.function](const Tensor& x, const AxesArg& axis, bool keepdims) {
          return f(x, axis.axes, keepdims);
        },
        "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(), op.doc);
  scope.def(
      "var",
      [](const Tensor& x, const AxesArg& axis, bool keepdims, double correction) {
        return ops::var(x, axis.axes, keepdims, correction);
      },
      "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, "correction"_a = 1.0, unlocked(),
      kDoc.var);
  scope.def("argmax", &ops::argmax, "x"_a, "axis"_a = -1, "keepdims"_a = false, unlocked(),
            kDoc.argmax);
  scope.def("argmin", &ops::argmin, "x"_a, "axis"_a = -1, "keepdims"_a = false, unlocked(),
            kDoc.argmin);
  scope.def("softmax", &ops::softmax, "x"_a, "axis"_a = -1, unlocked(), kDoc.softmax);
  scope.def("log_softmax", &ops::log_softmax, "x"_a, "axis"_a = -1, unlocked(), kDoc.log_softmax);
  scope.def("cumsum", &ops::cumsum, "x"_a, "axis"_a = -1, unlocked(), kDoc.cumsum);
  scope.def("clamp", &clamped, "x"_a, "min"_a = nb::none(), "max"_a = nb::none(), unlocked(),
            kDoc.clamp);
  scope.def("std", &std_of, "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false,
            "correction"_a = 1.0, unlocked(), kDoc.std);
  scope.def("all", &all_of, "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(),
            kDoc.all);
  scope.def("any", &any_of, "x"_a, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(),
            kDoc.any);
  scope.def("leaky_relu", &ops::leaky_relu, "x"_a, "slope"_a = 0.01, unlocked(), kDoc.leaky_relu);
  scope.def("elu", &ops::elu, "x"_a, "alpha"_a = 1.0, unlocked(), kDoc.elu);
  scope.def("hard_tanh", &ops::hard_tanh, "x"_a, "min"_a = -1.0, "max"_a = 1.0, unlocked(),
            kDoc.hard_tanh);
  scope.def("gelu", &ops::gelu, "x"_a, "tanh_form"_a = false, unlocked(), kDoc.gelu);
  scope.def("matmul", &ops::matmul, "a"_a, "b"_a, unlocked(), kDoc.matmul);
  scope.def("topk", &ops::topk, "x"_a, "k"_a, "axis"_a = -1, "largest"_a = true, unlocked(),
            kDoc.topk);
  scope.def("tril", &ops::tril, "x"_a, "diagonal"_a = 0, unlocked(), kDoc.tril);
  scope.def("triu", &ops::triu, "x"_a, "diagonal"_a = 0, unlocked(), kDoc.triu);
  scope.def("index_select", &ops::index_select, "x"_a, "axis"_a, "indices"_a, unlocked(),
            kDoc.index_select);
  scope.def("gather", &ops::gather, "x"_a, "axis"_a, "indices"_a, unlocked(), kDoc.gather);
}

void bind_elementwise(nb::module_& m) {
  for (const auto& op : kBinary)
    m.def(
        op.name,
        [f = op.function](const OperandArg& a, const OperandArg& b) {
          return apply_binary(f, a, b);
        },
        "a"_a, "b"_a, op.doc);
  m.def(
      "prelu",
      [](const Tensor& x, const OperandArg& slope) {
        const auto value = operand(slope, x.queue());
        Unlocked now;
        return ops::prelu(x, value);
      },
      "x"_a, "slope"_a, "x where it is positive, else slope * x, where the slope may be a tensor.");
  m.def(
      "where",
      [](const Tensor& condition, const OperandArg& a, const OperandArg& b) {
        const auto choose = [&](const ops::Operand& left, const ops::Operand& right) {
          Unlocked now;
          return ops::where(condition, left, right);
        };
        if (a.is_tensor || b.is_tensor) {
          const auto [left, right] = operands(a, b);
          return choose(left, right);
        }
        const auto left = tensor_from(a.object, condition.queue());
        return choose(left, operand_beside(left, b));
      },
      "condition"_a, "a"_a, "b"_a,
      "a where the condition is true, else b.\n\n"
      ">>> x = nc.Tensor([-1.0, 2.0])\n>>> nc.ops.where(x > 0, x, 0.0).tolist()\n[0.0, 2.0]\n");
  m.def(
      "cast", [](const Tensor& x, const DTypeArg& dtype) { return ops::cast(x, dtype); }, "x"_a,
      "dtype"_a, unlocked(), "Saturates; NaN to a whole number is 0.");
  m.def(
      "relu_", [](const Tensor& x) { return Tensor(ops::relu_(x)); }, "x"_a, unlocked(),
      "relu in place.");
  m.def(
      "clamp_",
      [](const Tensor& x, double min, double max) { return Tensor(ops::clamp_(x, min, max)); },
      "x"_a, "min"_a, "max"_a, unlocked(), "clamp in place.");
  m.def(
      "fill_", [](const Tensor& x, double value) { return Tensor(ops::fill_(x, value)); }, "x"_a,
      "value"_a, unlocked(), "Every element becomes the value.");
  m.def("elementwise_binary", &ops::elementwise_binary, "a"_a, "b"_a, "expression"_a, unlocked(),
        "An expression over v0 and v1 with the macros of PRIMITIVE_PREAMBLE.\n\n"
        ">>> x = nc.Tensor([1.0, 2.0])\n"
        ">>> nc.elementwise_binary(x, x, \"MUL(ADD(v0, v1), 2.0f)\").tolist()\n[4.0, 8.0]\n");
  m.def(
      "dropout",
      [](const Tensor& x, double p, std::optional<std::uint64_t> seed) {
        return ops::dropout(x, p, seed ? *seed : nn::next_seed());
      },
      "x"_a, "p"_a, "seed"_a = nb::none(), unlocked(),
      "0 with probability p, else x / (1 - p). A seed gives the same elements on every device.");
}

}  // namespace

void add_op_methods(nb::class_<Tensor>& tensor) {
  // The first argument of a method has no name.
  for (const auto& op : kUnary) tensor.def(op.name, op.function, unlocked(), op.doc);
  for (const auto& op : kReduce)
    tensor.def(
        op.name,
        [f = op.function](const Tensor& x, const AxesArg& axis, bool keepdims) {
          return f(x, axis.axes, keepdims);
        },
        "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(), op.doc);
  tensor
      .def(
          "var",
          [](const Tensor& x, const AxesArg& axis, bool keepdims, double correction) {
            return ops::var(x, axis.axes, keepdims, correction);
          },
          "axis"_a.none() = nb::none(), "keepdims"_a = false, "correction"_a = 1.0, unlocked(),
          kDoc.var)
      .def("argmax", &ops::argmax, "axis"_a = -1, "keepdims"_a = false, unlocked(), kDoc.argmax)
      .def("argmin", &ops::argmin, "axis"_a = -1, "keepdims"_a = false, unlocked(), kDoc.argmin)
      .def("softmax", &ops::softmax, "axis"_a = -1, unlocked(), kDoc.softmax)
      .def("log_softmax", &ops::log_softmax, "axis"_a = -1, unlocked(), kDoc.log_softmax)
      .def("cumsum", &ops::cumsum, "axis"_a = -1, unlocked(), kDoc.cumsum)
      .def("clamp", &clamped, "min"_a = nb::none(), "max"_a = nb::none(), unlocked(), kDoc.clamp)
      .def("std", &std_of, "axis"_a.none() = nb::none(), "keepdims"_a = false, "correction"_a = 1.0,
           unlocked(), kDoc.std)
      .def("all", &all_of, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(), kDoc.all)
      .def("any", &any_of, "axis"_a.none() = nb::none(), "keepdims"_a = false, unlocked(), kDoc.any)
      .def("gelu", &ops::gelu, "tanh_form"_a = false, unlocked(), kDoc.gelu)
      .def("matmul", &ops::matmul, "other"_a, unlocked(), kDoc.matmul)
      .def("topk", &ops::topk, "k"_a, "axis"_a = -1, "largest"_a = true, unlocked(), kDoc.topk)
      .def(
          "fill_",
          [](nb::handle self, double value) {
            const auto& x = nb::cast<const Tensor&>(self);
            Unlocked now;
            ops::fill_(x, value);
            return self;
          },
          "value"_a, nb::sig("def fill_(self, value: float) -> Tensor"),
          "Every element becomes the value.");
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
