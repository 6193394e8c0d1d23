// Element-wise ops of your own, with gradients. forward and backward write expressions; netcl makes
// kernels, the CPU backend's loops, fusion and gradients from them:
//
//   register_primitive(
//       "my_op",
//       [](auto& args, auto&) { return "MY_OP(" + args[0] + ", " + args[1] + ")"; },
//       [](auto& args, auto& grad_var, auto&, auto&) -> std::vector<std::string> {
//         return {"MUL(" + grad_var + ", " + args[1] + ")", "MUL(" + grad_var + ", " + args[0] +
//         ")"};
//       },
//       2);
//   Tensor y = call_primitive("my_op", {a, b});
//
// Expressions: docs/howto/custom-primitive.md.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/ops.h"

namespace netcl {

using PrimitiveArgs = std::vector<std::string>;             // names of the operands' values
using PrimitiveAttributes = std::map<std::string, double>;  // of one call
using PrimitiveForward =
    std::function<std::string(const PrimitiveArgs& args, const PrimitiveAttributes& attrs)>;
// One expression per operand; an empty one: no gradient. They may name the result, `out_var`.
using PrimitiveBackward = std::function<std::vector<std::string>(
    const PrimitiveArgs& args, const std::string& grad_var, const PrimitiveAttributes& attrs,
    const std::string& out_var)>;

struct AutogradPrimitive {
  std::string name;  // an identifier, and not the name of an op
  PrimitiveForward forward;
  PrimitiveBackward backward = nullptr;  // null: no gradient
  int arity = 1;                         // 1 ... 16
  bool fusible = true;
  // Macros and functions in OpenCL C that the expressions may call, besides those of the KernelSpec
  // that was last built under the same name.
  std::string source = {};
};

// The functions are tried at once, without attributes: what they return must be readable. When they
// throw, because they need attributes, that waits for the first call. ArgumentError with the name.
void register_primitive(AutogradPrimitive primitive, bool replace = false);
void register_primitive(const std::string& name, PrimitiveForward forward,
                        PrimitiveBackward backward, int arity, bool fusible = true,
                        bool replace = false);
// False when there was none. Calls that are recorded or under way are not affected.
bool unregister_primitive(std::string_view name);

AutogradPrimitive get_primitive(std::string_view name);  // ArgumentError that names near ones
bool has_primitive(std::string_view name);
std::vector<std::string> primitive_names();  // in their order

// Operands broadcast, numbers take the place of tensors (but not of all), mixed dtypes meet in the
// wider floating one: as in the element-wise ops.
Tensor call_primitive(std::string_view name, const std::vector<ops::Operand>& operands,
                      const PrimitiveAttributes& attrs = {});

}  // namespace netcl
