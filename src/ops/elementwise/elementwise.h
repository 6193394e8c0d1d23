// Running element code on tensors of either backend, and the dtype rules of element-wise ops.
#pragma once

#include "ops/elementwise/program.h"
#include "ops/elementwise/table.h"
#include "ops/op.h"

namespace netcl {

// The dtype in which two operands meet: the floating one before the integer one, then the wider;
// float16 with bfloat16 is float32.
DType promoted(DType a, DType b);
// What a floating op makes of an integer dtype: float64 of int64, float32 of the others.
DType floating_of(DType dtype);

// A conversion as an op, which a tape follows and fusion can take in; itself when it already is.
Tensor as_dtype(const Tensor& x, DType dtype);

// An operand of an element-wise op: a tensor, or a number.
struct ElementValue {
  const Tensor* tensor = nullptr;  // of the caller
  double number = 0;
  ElementValue(const Tensor& t) : tensor(t ? &t : nullptr) {}  // NOLINT: both read as operands
  ElementValue(double value) : number(value) {}                // NOLINT
  bool is_integral() const;  // a number without a fraction, or a tensor of integers
};

// Calls an op of the table: converts the operands to a common dtype, passes numbers as scalars.
Tensor call_element(const char* op, std::initializer_list<ElementValue> operands,
                    const Attributes& attributes = {});
// In place: the result is written into `target`, the first operand.
void call_element_into(const char* op, const Tensor& target,
                       std::initializer_list<ElementValue> others,
                       const Attributes& attributes = {});

// One row's gradient with respect to an input, in the shape of that input.
Tensor element_gradient(const ElementRow& row, std::size_t input, const OpGradient& gradient);

// The op that computes it, before the sum over repeated axes: which of a, b, c, y and dy it reads.
struct GradientOp {
  std::vector<ElementName> names;  // of its inputs; dy is always the last: it gives shape and dtype
  OpDef op;
};
const GradientOp& gradient_op(const ElementRow& row, std::size_t input);

// The gradient of a broadcast: the sum over the axes that were repeated.
Tensor reduce_to_shape(const Tensor& gradient, const Shape& shape);

OpDef make_element_op(const ElementRow& row);

}  // namespace netcl
