// + - * / @ and comparisons, numbers and text of tensors.
#include <cmath>

#include "common.h"
#include "netcl/autograd.h"

namespace netcl::python {
namespace {

using Binary = Tensor (*)(const ops::Operand&, const ops::Operand&);

Tensor apply(Binary op, const OperandArg& a, const OperandArg& b) {
  const auto [left, right] = operands(a, b);
  Unlocked now;
  return op(left, right);
}

OperandArg tensor_arg(nb::handle tensor) { return {tensor, true, false, 0}; }

void add_binary(nb::class_<Tensor>& t, const char* name, const char* reflected, Binary op) {
  t.def(
      name,
      [op](nb::handle self, const OperandArg& other) { return apply(op, tensor_arg(self), other); },
      nb::is_operator());
  if (reflected != nullptr)
    t.def(
        reflected,
        [op](nb::handle self, const OperandArg& other) {
          return apply(op, other, tensor_arg(self));
        },
        nb::is_operator());
}

using InPlace = const Tensor& (*)(const Tensor&, const ops::Operand&);
void add_in_place(nb::class_<Tensor>& t, const char* name, const char* method, InPlace op) {
  const auto apply_in_place = [op](nb::handle self, const OperandArg& other) {
    const auto& x = nb::cast<const Tensor&>(self);
    const auto value = operand_beside(x, other);
    Unlocked now;
    op(x, value);
    return self;
  };
  const auto signature = [](const char* which) {
    return "def " + std::string(which) + "(self, other: typing.Any) -> Tensor";
  };
  t.def(name, apply_in_place, nb::is_operator(), nb::sig(signature(name).c_str()));
  t.def(method, apply_in_place, "other"_a, nb::sig(signature(method).c_str()),
        "In place; the result must have this shape and dtype. The tensor itself.");
}

bool is_whole(const ops::Operand& x) {
  return x.is_number() ? x.number() == std::floor(x.number()) : !is_floating(x.tensor().dtype());
}

// The dtype of sums and products of whole numbers.
DType whole_dtype(const ops::Operand& a, const ops::Operand& b) {
  for (const auto* one : {&a, &b})
    if (!one->is_number() && one->tensor().dtype() == DType::int64) return DType::int64;
  return DType::int32;
}

Tensor as_int64(const ops::Operand& x, const ops::Operand& other) {
  if (!x.is_number()) return x.tensor().astype(DType::int64);
  return Tensor::full(other.tensor().queue(), Shape(), x.number(), DType::int64);
}

// The quotient's double may be wrong by some thousands where the numbers have more than 53 bits:
// what is left over is divided again, and a last step of one puts the rest on the divisor's side.
Tensor corrected(const Tensor& a, const Tensor& b, Tensor quotient) {
  quotient = quotient + ops::cast(ops::floor((a - quotient * b) / b), DType::int64);
  const auto rest = a - quotient * b;
  const auto is_negative = ops::lt(b, 0);
  const auto is_over = ops::where(is_negative, ops::gt(rest, 0), ops::lt(rest, 0));
  const auto is_under = ops::where(is_negative, ops::le(rest, b), ops::ge(rest, b));
  return ops::where(is_over, quotient - 1, ops::where(is_under, quotient + 1, quotient));
}

// Quotient and rest of whole numbers as in NumPy: the quotient is rounded down, and both are 0
// where the divisor is.
std::pair<Tensor, Tensor> divide(const ops::Operand& left, const ops::Operand& right) {
  const auto dtype = whole_dtype(left, right);
  const auto a = as_int64(left, right), b = as_int64(right, left);
  auto quotient = ops::cast(ops::floor(a / b), DType::int64);
  if (dtype == DType::int64) quotient = corrected(a, b, quotient);
  const auto defined = ops::ne(b, 0);
  return {ops::cast(ops::where(defined, quotient, 0), dtype),
          ops::cast(ops::where(defined, a - quotient * b, 0), dtype)};
}

Tensor floor_divide(const ops::Operand& a, const ops::Operand& b) {
  if (!is_whole(a) || !is_whole(b)) return ops::floor(ops::div(a, b));
  return divide(a, b).first;
}

// As a tensor that meets `other` in its floating dtype.
Tensor float_tensor(const ops::Operand& x, const ops::Operand& other) {
  if (!x.is_number()) return x.tensor();
  const auto dtype = other.tensor().dtype();
  const auto wanted = is_floating(dtype)      ? dtype
                      : dtype == DType::int64 ? DType::float64
                                              : DType::float32;
  return Tensor::full(other.tensor().queue(), Shape(), x.number(), wanted);
}

// With the sign of the divisor, as in Python.
Tensor remainder(const ops::Operand& a, const ops::Operand& b) {
  if (is_whole(a) && is_whole(b)) return divide(a, b).second;
  return ops::elementwise_binary(float_tensor(a, b), float_tensor(b, a),
                                 "fmod(v0, v1) + (fmod(v0, v1) * v1 < 0 ? v1 : 0)");
}

// Whole numbers stay whole in whole powers, as in NumPy.
Tensor power(const ops::Operand& a, const ops::Operand& b) {
  const bool stays = !a.is_number() && b.is_number() && is_whole(a) && is_whole(b) &&
                     b.number() >= 0 && b.number() <= INT32_MAX;
  if (!stays) return ops::pow(a, b);
  auto result = ops::add(ops::mul(a, 0), 1);
  auto factor = a.tensor();
  for (auto rest = static_cast<std::int64_t>(b.number()); rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = result * factor;
    if (rest > 1) factor = factor * factor;
  }
  return result;
}

// & | ^ ~ are for masks. NumPy combines the bits of whole numbers with them, which netcl has no op
// for: better an error than the truth values that a reader would not expect.
void require_masks(const char* sign, std::initializer_list<const ops::Operand*> operands) {
  bool masks = true;
  std::string types;
  for (const auto* one : operands) {
    masks = masks && (one->is_number() ? one->number() == 0 || one->number() == 1
                                       : one->tensor().dtype() == DType::boolean);
    types += types.empty() ? "" : " and ";
    types += one->is_number() ? "a number" : std::string(name_of(one->tensor().dtype()));
  }
  if (!masks)
    throw DtypeError(
        "[" + std::string(sign) +
        "] operands must be bool (ops.logical_and, _or, _xor and _not take all): " + types);
}
Tensor mask_and(const ops::Operand& a, const ops::Operand& b) {
  require_masks("&", {&a, &b});
  return ops::logical_and(a, b);
}
Tensor mask_or(const ops::Operand& a, const ops::Operand& b) {
  require_masks("|", {&a, &b});
  return ops::logical_or(a, b);
}
Tensor mask_xor(const ops::Operand& a, const ops::Operand& b) {
  require_masks("^", {&a, &b});
  return ops::logical_xor(a, b);
}
Tensor mask_not(const Tensor& x) {
  const ops::Operand operand(x);
  require_masks("~", {&operand});
  return ops::logical_not(x);
}

std::string text(const Tensor& x) {
  auto result = made(x).to_string();
  if (Node::of(x)) result.insert(result.size() - 1, ", requires_grad=True");
  return result;
}

nb::object formatted(const Tensor& x, const std::string& how) {
  if (how.empty()) return nb::cast(text(x));
  return nb::module_::import_("builtins").attr("format")(to_numpy(x).attr("item")(), how);
}

bool truth(const Tensor& x) {
  if (made(x).numel() != 1)
    throw nb::value_error("the truth value of a tensor with more than one element is ambiguous");
  Unlocked now;
  return x.item() != 0;
}

}  // namespace

void add_operators(nb::class_<Tensor>& t) {
  add_binary(t, "__add__", "__radd__", &ops::add);
  add_binary(t, "__sub__", "__rsub__", &ops::sub);
  add_binary(t, "__mul__", "__rmul__", &ops::mul);
  add_binary(t, "__truediv__", "__rtruediv__", &ops::div);
  add_binary(t, "__floordiv__", "__rfloordiv__", &floor_divide);
  add_binary(t, "__mod__", "__rmod__", &remainder);
  add_binary(t, "__pow__", "__rpow__", &power);
  add_binary(t, "__eq__", nullptr, &ops::eq);
  add_binary(t, "__ne__", nullptr, &ops::ne);
  add_binary(t, "__lt__", nullptr, &ops::lt);
  add_binary(t, "__le__", nullptr, &ops::le);
  add_binary(t, "__gt__", nullptr, &ops::gt);
  add_binary(t, "__ge__", nullptr, &ops::ge);
  add_binary(t, "__and__", "__rand__", &mask_and);
  add_binary(t, "__or__", "__ror__", &mask_or);
  add_binary(t, "__xor__", "__rxor__", &mask_xor);
  add_in_place(t, "__iadd__", "add_", &ops::add_);
  add_in_place(t, "__isub__", "sub_", &ops::sub_);
  add_in_place(t, "__imul__", "mul_", &ops::mul_);
  add_in_place(t, "__itruediv__", "div_", &ops::div_);
  t.def("__matmul__",
        [](const Tensor& a, nb::handle b) {
          const auto right =
              nb::isinstance<Tensor>(b) ? nb::cast<Tensor>(b) : tensor_from(b, a.queue());
          Unlocked now;
          return ops::matmul(a, right);
        })
      .def("__rmatmul__",
           [](const Tensor& b, nb::handle a) {
             const auto left = tensor_from(a, b.queue());
             Unlocked now;
             return ops::matmul(left, b);
           })
      .def("__neg__", &ops::neg, unlocked())
      .def(
          "__pos__", [](nb::handle self) { return self; }, nb::sig("def __pos__(self) -> Tensor"))
      .def("__abs__", &ops::abs, unlocked())
      .def("__round__", &ops::round, unlocked())
      .def(
          "__divmod__",
          [](nb::handle self, const OperandArg& other) {
            return std::pair(apply(&floor_divide, tensor_arg(self), other),
                             apply(&remainder, tensor_arg(self), other));
          },
          nb::is_operator())
      .def("__invert__", &mask_not, unlocked())
      .def("__hash__",
           [](nb::handle self) { return reinterpret_cast<std::uintptr_t>(self.ptr()) >> 4; })
      .def("__bool__", &truth)
      .def("__float__", &Tensor::item, unlocked())
      .def("__int__", [](const Tensor& x) { return nb::int_(to_numpy(x).attr("item")()); })
      .def("__index__",
           [](const Tensor& x) {
             if (is_floating(x.dtype()) || x.numel() != 1)
               throw nb::type_error("only a tensor of one whole number can be an index");
             return nb::int_(to_numpy(x).attr("item")());
           })
      .def("__repr__", &text, unlocked())
      .def("__str__", &text, unlocked())
      .def("__format__", &formatted, "how"_a,
           "As a number where a format is given: f\"{loss:.3f}\"");
}

}  // namespace netcl::python
