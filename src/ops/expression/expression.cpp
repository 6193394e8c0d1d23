// Evaluation and OpenCL text of expressions. Arguments come before their calls, so both are loops
// over the nodes.
#include "ops/expression/expression.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ops/expression/builder.h"

namespace netcl {
namespace {

using Kind = Expression::Node::Kind;

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

std::string call_text(const Expression::Node& node, const std::vector<std::string>& values) {
  std::string text;
  const auto& pattern = node.function->opencl;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$')
      text += pattern[i];
    else
      text += values[node.arguments[static_cast<std::size_t>(pattern[++i] - 'a')]];
  }
  return text;
}

}  // namespace

const ExpressionFunction* ExpressionLibrary::find(std::string_view name) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const auto& function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

bool Expression::uses(std::size_t variable) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.kind == Kind::variable && node.index == variable;
  });
}

bool Expression::takes_vectors() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.kind != Kind::call || (node.function->vectors && !node.function->is_users());
  });
}

double Expression::ulps() const {
  double sum = 0;
  for (const auto& node : nodes_)
    if (node.kind == Kind::call) sum += node.function->ulps;
  return sum;
}

std::string Expression::structure() const {
  std::string text;
  for (const auto& node : nodes_) {
    switch (node.kind) {
      case Kind::number:
        text += fmt::format("{:a}", node.number);
        break;
      case Kind::variable:
        text += fmt::format("v{}", node.index);
        break;
      case Kind::parameter:
        text += fmt::format("p{}", node.index);
        break;
      case Kind::call:
        text += fmt::format("{}({})", node.function->name, join(node.arguments, ","));
    }
    text += ';';
  }
  return text;
}

// ---- other expressions

Expression Expression::expanded(std::string_view where) const {
  if (library_ == nullptr) return *this;
  ExpressionBuilder builder(variables_, parameters_);
  std::vector<std::size_t> ours;
  for (const auto& node : nodes_) {
    std::vector<std::size_t> arguments;
    for (const auto argument : node.arguments) arguments.push_back(ours[argument]);
    if (node.kind == Kind::number)
      ours.push_back(builder.number(node.number));
    else if (node.kind == Kind::variable)
      ours.push_back(builder.variable(node.index));
    else if (node.kind == Kind::parameter)
      ours.push_back(builder.parameter(node.index));
    else if (node.function->is_users())
      ours.push_back(builder.inlined(where, *node.function, std::move(arguments)));
    else
      ours.push_back(builder.call(*node.function, std::move(arguments)));
  }
  return builder.finish(ours.back(), text_);
}

Expression Expression::with_numbers_as_parameters(std::span<const std::string> names,
                                                  std::vector<double>& values) const {
  auto result = *this;
  for (auto& node : result.nodes_) {
    if (node.kind != Kind::number || values.size() >= names.size()) continue;
    result.parameters_.push_back(names[values.size()]);
    values.push_back(node.number);
    node = {Kind::parameter, 0, result.parameters_.size() - 1};
  }
  return result;
}

Expression Expression::with_variables(std::span<const std::size_t> order) const {
  auto result = *this;
  result.variables_.clear();
  for (const auto from : order) result.variables_.push_back(variables_[from]);
  for (auto& node : result.nodes_) {
    if (node.kind != Kind::variable) continue;
    const auto found = std::find(order.begin(), order.end(), node.index);
    check(found != order.end(), "[expression] the variable {} is used", variables_[node.index]);
    node.index = static_cast<std::size_t>(found - order.begin());
  }
  return result;
}

Expression Expression::with_used_parameters(std::span<const std::string> names) const {
  auto result = *this;
  std::vector<std::size_t> used;
  result.parameters_.clear();
  for (auto& node : result.nodes_) {
    if (node.kind != Kind::parameter) continue;
    const auto found = std::find(used.begin(), used.end(), node.index);
    if (found == used.end()) {
      used.push_back(node.index);
      result.parameters_.push_back(names.empty() ? parameters_[node.index] : names[node.index]);
      node.index = used.size() - 1;
    } else {
      node.index = static_cast<std::size_t>(found - used.begin());
    }
  }
  return result;
}

// ---- values

double Expression::evaluate(std::span<const double> values,
                            std::span<const double> parameters) const {
  check(values.size() >= variables_.size() && parameters.size() >= parameters_.size(),
        "[expression] it has {} variables and {} parameters: {} and {} values", variables_.size(),
        parameters_.size(), values.size(), parameters.size());
  std::vector<const double*> variables;
  for (const auto& value : values) variables.push_back(&value);
  std::vector<double> scratch(blocks_);
  return *evaluate_block<double>(1, variables.data(), parameters.data(), scratch.data());
}

template <class V>
const V* Expression::evaluate_block(std::int64_t n, const V* const* variables, const V* parameters,
                                    V* scratch) const {
  const auto value = [&](std::size_t i) -> const V* {
    return nodes_[i].kind == Kind::variable ? variables[nodes_[i].index]
                                            : scratch + static_cast<std::int64_t>(slots_[i]) * n;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto& node = nodes_[i];
    if (node.kind == Kind::variable) continue;
    V* out = scratch + static_cast<std::int64_t>(slots_[i]) * n;
    if (node.kind == Kind::call) {
      // Functions of fewer arguments ignore the others, which must be readable all the same.
      const auto& arguments = node.arguments;
      const V* a = value(arguments[0]);
      const V* b = arguments.size() > 1 ? value(arguments[1]) : a;
      const V* c = arguments.size() > 2 ? value(arguments[2]) : a;
      block_of<V> (*node.function)(n, a, b, c, out);
    } else {
      std::fill_n(out, n,
                  node.kind == Kind::number ? static_cast<V>(node.number) : parameters[node.index]);
    }
  }
  return value(nodes_.size() - 1);
}

template const float* Expression::evaluate_block(std::int64_t, const float* const*, const float*,
                                                 float*) const;
template const double* Expression::evaluate_block(std::int64_t, const double* const*, const double*,
                                                  double*) const;

// ---- text

Expression::Code Expression::to_opencl(DType compute, std::string_view prefix) const {
  return to_opencl(compute, prefix, variables_, parameters_);
}

Expression::Code Expression::to_opencl(DType compute, std::string_view prefix,
                                       std::span<const std::string> variables,
                                       std::span<const std::string> parameters) const {
  Code code;
  std::vector<std::string> names;
  for (const auto& node : nodes_) {
    switch (node.kind) {
      case Kind::number:
        names.push_back(literal(node.number, compute));
        break;
      case Kind::variable:
        names.push_back(variables[node.index]);
        break;
      case Kind::parameter:
        names.push_back(fmt::format("K({})", parameters[node.index]));
        break;
      case Kind::call:
        // A name per node: arguments that a macro uses twice must not be computed twice.
        auto name = fmt::format("{}{}", prefix, code.statements.size());
        code.statements.push_back(fmt::format("const V {} = {};", name, call_text(node, names)));
        names.push_back(std::move(name));
    }
  }
  code.result = names.back();
  return code;
}

}  // namespace netcl
