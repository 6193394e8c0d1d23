// Gradients of expression ops. Every gradient is an expression op of its own, which reads those
// inputs and the output that its expression names, and the gradient of the output, which comes last
// and has the shape of the result.
#include <mutex>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expression/derivative.h"
#include "ops/expression/expression_op.h"

namespace netcl {

struct ExpressionGradients::Part {
  std::vector<std::size_t> from;  // per input of `op`: one of ours, kOutput or kGradient
  Expression expression;
  OpDef op;
};

struct ExpressionGradients::State {
  std::string name;
  std::optional<Expression> of;                  // to derive from
  std::vector<std::optional<Expression>> given;  // in the place of that
  bool fusible;
  std::mutex mutex;
  std::vector<std::unique_ptr<const Part>> parts;
};

namespace {

constexpr std::size_t kOutput = SIZE_MAX - 1, kGradient = SIZE_MAX;

// Variables of a gradient's expression: the inputs, then the output and its gradient (given ones)
// or the gradient alone (derived ones).
std::size_t meaning(std::size_t variable, std::size_t variables, bool has_output) {
  if (variable + 1 == variables) return kGradient;
  return has_output && variable + 2 == variables ? kOutput : variable;
}

}  // namespace

ExpressionGradients::ExpressionGradients(std::string name, Expression of, bool fusible)
    : state_(new State{std::move(name), std::move(of), {}, fusible, {}, {}}) {
  state_->parts.resize(state_->of->variables().size());
}

ExpressionGradients::ExpressionGradients(std::string name,
                                         std::vector<std::optional<Expression>> given, bool fusible)
    : state_(new State{std::move(name), {}, std::move(given), fusible, {}, {}}) {
  state_->parts.resize(state_->given.size());
}

ExpressionGradients::~ExpressionGradients() = default;

const ExpressionGradients::Part* ExpressionGradients::part(std::size_t input) const {
  auto& state = *state_;
  if (input >= state.parts.size()) return nullptr;
  if (!state.of && !state.given[input]) return nullptr;
  const std::lock_guard lock(state.mutex);
  auto& known = state.parts[input];
  if (known) return known.get();
  const auto name = fmt::format("{}_gradient{}", state.name, input);
  auto expression =
      state.of ? derivative(state.of->expanded(state.name), input, "dy") : *state.given[input];
  const auto count = expression.variables().size();
  std::vector<std::size_t> order, from;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count && !expression.uses(i)) continue;
    order.push_back(i);
    from.push_back(meaning(i, count, !state.of));
  }
  expression = expression.with_variables(order).with_used_parameters();
  auto op = make_expression_op(
      {name, expression, std::make_shared<ExpressionGradients>(name, expression, state.fusible),
       state.fusible});
  known.reset(new Part{std::move(from), std::move(expression), std::move(op)});
  return known.get();
}

std::vector<Tensor> ExpressionGradients::backward(const OpGradient& gradient) const {
  std::vector<Tensor> result(gradient.inputs.size());
  for (std::size_t i = 0; i < gradient.inputs.size(); ++i) {
    const auto& input = gradient.inputs[i];
    if (!gradient.wants(i) || !input || !is_floating(input.dtype()) || !gradient.dy()) continue;
    const auto* part = this->part(i);
    if (part == nullptr) continue;
    std::vector<Tensor> inputs;
    Attributes attributes;
    for (const auto from : part->from) {
      const auto place = inputs.size();
      inputs.push_back(from == kGradient ? gradient.dy()
                       : from == kOutput ? gradient.outputs[0]
                                         : gradient.inputs[from]);
      if (!inputs.back())
        attributes.set(scalar_input(place), gradient.attributes.number(scalar_input(from)));
    }
    for (const auto& name : part->expression.parameters())
      attributes.set(name, gradient.attributes.number(name));
    result[i] = reduce_to_shape(call_op(part->op, std::move(inputs), attributes)[0], input.shape());
  }
  return result;
}

SavedTensors ExpressionGradients::saves(const std::vector<bool>& wanted) const {
  SavedTensors saved{0, 0};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto* part = wanted[i] ? this->part(i) : nullptr;
    if (part == nullptr) continue;
    for (const auto from : part->from) {
      if (from == kOutput) saved.outputs |= 1;
      if (from < 32) saved.inputs |= 1u << from;
    }
  }
  return saved;
}

void set_gradients(OpDef& op, std::shared_ptr<const ExpressionGradients> gradients) {
  op.backward = [gradients](const OpGradient& gradient) { return gradients->backward(gradient); };
  op.saves = [gradients](const std::vector<bool>& wanted, const Attributes&) {
    return gradients->saves(wanted);
  };
}

}  // namespace netcl
