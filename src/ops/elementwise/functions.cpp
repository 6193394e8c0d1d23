// The public functions of the element-wise ops.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/elementwise/elementwise.h"

namespace netcl::ops {
namespace {

ElementValue value_of(const char* op, const Operand& operand) {
  if (operand.is_number()) return operand.number();
  check<ArgumentError>(static_cast<bool>(operand.tensor()),
                       "[{}] an operand must not be an empty tensor (default-made)", op);
  return operand.tensor();
}

Tensor binary(const char* op, const Operand& a, const Operand& b) {
  return call_element(op, {value_of(op, a), value_of(op, b)});
}

}  // namespace

#define NETCL_BINARY(name) \
  Tensor name(const Operand& a, const Operand& b) { return binary(#name, a, b); }
#define NETCL_UNARY(name) \
  Tensor name(const Tensor& x) { return call_element(#name, {x}); }

NETCL_BINARY(add)
NETCL_BINARY(sub)
NETCL_BINARY(mul)
NETCL_BINARY(div)
NETCL_BINARY(pow)
NETCL_BINARY(maximum)
NETCL_BINARY(minimum)
NETCL_BINARY(eq)
NETCL_BINARY(ne)
NETCL_BINARY(lt)
NETCL_BINARY(le)
NETCL_BINARY(gt)
NETCL_BINARY(ge)
NETCL_BINARY(logical_and)
NETCL_BINARY(logical_or)
NETCL_BINARY(logical_xor)
NETCL_UNARY(neg)
NETCL_UNARY(abs)
NETCL_UNARY(sign)
NETCL_UNARY(square)
NETCL_UNARY(reciprocal)
NETCL_UNARY(floor)
NETCL_UNARY(ceil)
NETCL_UNARY(round)
NETCL_UNARY(exp)
NETCL_UNARY(expm1)
NETCL_UNARY(log)
NETCL_UNARY(log1p)
NETCL_UNARY(sqrt)
NETCL_UNARY(rsqrt)
NETCL_UNARY(sin)
NETCL_UNARY(cos)
NETCL_UNARY(erf)
NETCL_UNARY(relu)
NETCL_UNARY(sigmoid)
NETCL_UNARY(tanh)
NETCL_UNARY(silu)
NETCL_UNARY(softplus)
NETCL_UNARY(mish)
NETCL_UNARY(hard_sigmoid)
NETCL_UNARY(hard_swish)
NETCL_UNARY(logical_not)
NETCL_UNARY(isnan)
NETCL_UNARY(isinf)
NETCL_UNARY(isfinite)

#undef NETCL_BINARY
#undef NETCL_UNARY

Tensor swish(const Tensor& x) { return silu(x); }
Tensor gelu(const Tensor& x, bool tanh_form) {
  return call_element(tanh_form ? "gelu_tanh" : "gelu", {x});
}
Tensor leaky_relu(const Tensor& x, double slope) {
  return call_element("leaky_relu", {x}, {{"slope", slope}});
}
Tensor prelu(const Tensor& x, const Operand& slope) {
  return call_element("prelu", {value_of("prelu", x), value_of("prelu", slope)});
}
Tensor elu(const Tensor& x, double alpha) { return call_element("elu", {x}, {{"alpha", alpha}}); }
Tensor hard_tanh(const Tensor& x, double min, double max) {
  return call_element("hard_tanh", {x}, {{"min", min}, {"max", max}});
}
Tensor clamp(const Tensor& x, double min, double max) {
  return call_element("clamp", {x}, {{"min", min}, {"max", max}});
}
Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  return call_element("where",
                      {value_of("where", condition), value_of("where", a), value_of("where", b)});
}

const Tensor& add_(const Tensor& x, const Operand& other) {
  call_element_into("add", x, {value_of("add_", other)});
  return x;
}
const Tensor& sub_(const Tensor& x, const Operand& other) {
  call_element_into("sub", x, {value_of("sub_", other)});
  return x;
}
const Tensor& mul_(const Tensor& x, const Operand& other) {
  call_element_into("mul", x, {value_of("mul_", other)});
  return x;
}
const Tensor& div_(const Tensor& x, const Operand& other) {
  call_element_into("div", x, {value_of("div_", other)});
  return x;
}
const Tensor& relu_(const Tensor& x) {
  call_element_into("relu", x, {});
  return x;
}
const Tensor& clamp_(const Tensor& x, double min, double max) {
  call_element_into("clamp", x, {}, {{"min", min}, {"max", max}});
  return x;
}

}  // namespace netcl::ops

namespace netcl {

Tensor operator+(const ops::Operand& a, const ops::Operand& b) { return ops::add(a, b); }
Tensor operator-(const ops::Operand& a, const ops::Operand& b) { return ops::sub(a, b); }
Tensor operator*(const ops::Operand& a, const ops::Operand& b) { return ops::mul(a, b); }
Tensor operator/(const ops::Operand& a, const ops::Operand& b) { return ops::div(a, b); }
Tensor operator-(const Tensor& x) { return ops::neg(x); }

}  // namespace netcl
