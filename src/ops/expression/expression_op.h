// Ops that compute an expression of their inputs, element by element: the expressions of
// elementwise_binary, users' primitives, and derivatives of gradients. They appear in no list.
//
// Input i of a call may be left out: then the attribute scalar_input(i) is its value. Parameters of
// the expression are attributes of their names.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "ops/expression/expression.h"
#include "ops/op.h"

namespace netcl {

constexpr std::size_t kMostExpressionInputs = 32;
// "scalar0", "scalar1", ...: the attribute with the value of an input that was left out.
std::string_view scalar_input(std::size_t input);

// The gradients of an op with one output. Made when they are first asked for, and ops themselves:
// they have gradients too.
class ExpressionGradients {
 public:
  // Derived from the expression of the op.
  ExpressionGradients(std::string name, Expression of, bool fusible = true);
  // Given, one per input (none where there is none), over the inputs, the output and its gradient.
  ExpressionGradients(std::string name, std::vector<std::optional<Expression>> given,
                      bool fusible = true);
  ~ExpressionGradients();
  ExpressionGradients(const ExpressionGradients&) = delete;
  ExpressionGradients& operator=(const ExpressionGradients&) = delete;

  std::vector<Tensor> backward(const OpGradient& gradient) const;
  SavedTensors saves(const std::vector<bool>& wanted) const;

 private:
  struct Part;
  struct State;
  const Part* part(std::size_t input) const;  // null where there is no gradient
  std::unique_ptr<State> state_;
};

// Gives an op these gradients.
void set_gradients(OpDef& op, std::shared_ptr<const ExpressionGradients> gradients);

struct ExpressionOp {
  std::string name;
  Expression expression;  // its variables are the inputs
  // Null: the op has none.
  std::shared_ptr<const ExpressionGradients> gradients = nullptr;
  bool fusible = true;
};
OpDef make_expression_op(const ExpressionOp& description);

// The numbers of expressions as attributes "number0", ...: expressions that differ in nothing else
// share their op and its kernels.
std::span<const std::string> number_names();
Attributes number_attributes(std::span<const double> values);

// Ops by the structure of what they compute. They stay, because calls may be recorded anywhere.
class ExpressionForms {
 public:
  const OpDef& get(const std::string& structure, const std::function<OpDef()>& make);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<const OpDef>> ops_;
};

}  // namespace netcl
