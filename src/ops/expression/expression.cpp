// Evaluation and OpenCL text of expressions. Nodes are in postorder, so both are loops with a
// stack.
#include "ops/expression/expression.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace netcl {
namespace {

template <class V>
ExpressionBlock<V> block_of(const ExpressionFunction& function) {
  if constexpr (std::is_same_v<V, float>)
    return function.f32;
  else
    return function.f64;
}

// A literal of the compute type; every value has one.
std::string literal(double value, DType compute) {
  const bool single = compute != DType::float64;
  if (std::isnan(value)) return "K(NAN)";
  if (std::isinf(single ? static_cast<float>(value) : value))
    return value > 0 ? "K(INFINITY)" : "K(-INFINITY)";
  auto text =
      single ? fmt::format("{:.9g}", static_cast<float>(value)) : fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return fmt::format("K({}{})", text, single ? "f" : "");
}

}  // namespace

bool Expression::uses(std::size_t variable) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.kind == Node::Kind::variable && node.variable == variable;
  });
}

double Expression::ulps() const {
  double sum = 0;
  for (const auto& node : nodes_)
    if (node.kind == Node::Kind::call) sum += node.function->ulps;
  return sum;
}

double Expression::evaluate(std::span<const double> values) const {
  check(values.size() >= variables_.size(), "[expression] it has {} variables: {} values",
        variables_.size(), values.size());
  std::vector<const double*> variables;
  for (const auto& value : values) variables.push_back(&value);
  std::vector<double> scratch(depth_);
  return *evaluate_block<double>(1, variables.data(), scratch.data());
}

template <class V>
const V* Expression::evaluate_block(std::int64_t n, const V* const* variables, V* scratch) const {
  std::vector<const V*> stack;  // of variables, or of their level of the scratch memory
  stack.reserve(depth_ + 3);
  for (const auto& node : nodes_) {
    if (node.kind == Node::Kind::variable) {
      stack.push_back(variables[node.variable]);
      continue;
    }
    const auto arity =
        node.kind == Node::Kind::call ? static_cast<std::size_t>(node.function->arity) : 0;
    const auto level = stack.size() - arity;
    V* out = scratch + static_cast<std::int64_t>(level) * n;
    if (arity == 0) {
      std::fill_n(out, n, static_cast<V>(node.number));
    } else {
      // Functions of fewer arguments ignore the others, which must be readable all the same. The
      // result may lie over the first argument: it is written element by element.
      const V* a = stack[level];
      const V* b = arity > 1 ? stack[level + 1] : a;
      const V* c = arity > 2 ? stack[level + 2] : a;
      block_of<V> (*node.function)(n, a, b, c, out);
    }
    stack.resize(level);
    stack.push_back(out);
  }
  return stack.back();
}

template const float* Expression::evaluate_block(std::int64_t, const float* const*, float*) const;
template const double* Expression::evaluate_block(std::int64_t, const double* const*,
                                                  double*) const;

Expression::Code Expression::to_opencl(DType compute, std::string_view prefix) const {
  Code code;
  std::vector<std::string> names;
  for (const auto& node : nodes_) {
    if (node.kind == Node::Kind::number) {
      names.push_back(literal(node.number, compute));
    } else if (node.kind == Node::Kind::variable) {
      names.push_back(variables_[node.variable]);
    } else {
      std::string value;
      for (const char* c = node.function->opencl; *c != '\0'; ++c) {
        if (*c != '$')
          value += *c;
        else
          value += names[node.arguments[static_cast<std::size_t>(*++c - 'a')]];
      }
      // A name per node: arguments that a macro uses twice must not be computed twice.
      auto name = fmt::format("{}{}", prefix, code.statements.size());
      code.statements.push_back(fmt::format("const V {} = {};", name, value));
      names.push_back(std::move(name));
    }
  }
  code.result = names.back();
  return code;
}

}  // namespace netcl
