#include "ops/expression/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace netcl {
namespace {

using Node = Expression::Node;
using Kind = Node::Kind;

constexpr std::size_t kMostNodes = 1 << 16;

void append(std::string& bytes, const void* from, std::size_t size) {
  bytes.append(static_cast<const char*>(from), size);
}

// All there is to a node, as bytes: NaN is equal to itself, and -0 is not 0.
std::string content(const Node& node) {
  std::string bytes(1, static_cast<char>(node.kind));
  if (node.kind == Kind::number) append(bytes, &node.number, sizeof node.number);
  append(bytes, &node.index, sizeof node.index);
  append(bytes, &node.function, sizeof node.function);
  for (const auto argument : node.arguments) append(bytes, &argument, sizeof argument);
  return bytes;
}

// A place in the scratch memory for every node that computes something, given back behind its last
// use. A result may lie over its own arguments: functions go element by element.
class Slots {
 public:
  explicit Slots(const std::vector<Node>& nodes) : of_(nodes.size(), 0), last_(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const auto argument : nodes[i].arguments) last_[argument] = i;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      give_back(nodes, i);
      if (nodes[i].kind != Kind::variable) of_[i] = take();
    }
  }
  std::vector<std::size_t> of() && { return std::move(of_); }
  std::size_t count() const { return busy_.size(); }

 private:
  void give_back(const std::vector<Node>& nodes, std::size_t i) {
    for (const auto argument : nodes[i].arguments)
      if (last_[argument] == i && nodes[argument].kind != Kind::variable)
        busy_[of_[argument]] = false;
  }
  std::size_t take() {
    const auto found = std::find(busy_.begin(), busy_.end(), false);
    const auto slot = static_cast<std::size_t>(found - busy_.begin());
    if (found == busy_.end())
      busy_.push_back(true);
    else
      *found = true;
    return slot;
  }
  std::vector<std::size_t> of_, last_;
  std::vector<bool> busy_;
};

}  // namespace

ExpressionBuilder::ExpressionBuilder(std::vector<std::string> variables,
                                     std::vector<std::string> parameters)
    : variables_(std::move(variables)), parameters_(std::move(parameters)) {}

std::size_t ExpressionBuilder::add(Node node) {
  check<ArgumentError>(nodes_.size() < kMostNodes,
                       "[expression] more than {} steps, with all calls written out", kMostNodes);
  const auto [found, is_new] = known_.emplace(content(node), nodes_.size());
  if (is_new) nodes_.push_back(std::move(node));
  return found->second;
}

std::size_t ExpressionBuilder::number(double value) { return add({Kind::number, value}); }
std::size_t ExpressionBuilder::variable(std::size_t index) {
  return add({Kind::variable, 0, index});
}
std::size_t ExpressionBuilder::parameter(std::size_t index) {
  return add({Kind::parameter, 0, index});
}
std::size_t ExpressionBuilder::call(const ExpressionFunction& function,
                                    std::vector<std::size_t> arguments) {
  return add({Kind::call, 0, 0, &function, std::move(arguments)});
}
std::size_t ExpressionBuilder::call(std::string_view name, std::vector<std::size_t> arguments) {
  return call(expression_function(name), std::move(arguments));
}

bool ExpressionBuilder::is_number(std::size_t node, double value) const {
  return nodes_[node].kind == Kind::number && nodes_[node].number == value;
}

std::size_t ExpressionBuilder::inlined(std::string_view where, const ExpressionFunction& function,
                                       std::vector<std::size_t> arguments) {
  check<ArgumentError>(function.body != nullptr,
                       "[{}] {} cannot be evaluated outside of OpenCL kernels: {}. That takes a "
                       "macro that is an expression, or a function of constants with initial "
                       "values and one return",
                       where, function.name, function.why_no_body);
  return splice(*function.body, arguments).back();
}

std::vector<std::size_t> ExpressionBuilder::splice(const Expression& other,
                                                   std::span<const std::size_t> variables) {
  std::vector<std::size_t> ours;
  ours.reserve(other.nodes().size());
  for (const auto& node : other.nodes()) {
    if (node.kind == Kind::variable) {
      ours.push_back(variables[node.index]);
      continue;
    }
    auto copy = node;
    for (auto& argument : copy.arguments) argument = ours[argument];
    ours.push_back(add(std::move(copy)));
  }
  return ours;
}

Expression ExpressionBuilder::finish(std::size_t root, std::string text,
                                     std::shared_ptr<const ExpressionLibrary> library) {
  std::vector<bool> needed(root + 1, false);
  needed[root] = true;
  for (std::size_t i = root + 1; i-- > 0;)
    if (needed[i])
      for (const auto argument : nodes_[i].arguments) needed[argument] = true;
  Expression result;
  std::vector<std::size_t> place(root + 1, 0);
  bool calls_user = false;
  for (std::size_t i = 0; i <= root; ++i) {
    if (!needed[i]) continue;
    for (auto& argument : nodes_[i].arguments) argument = place[argument];
    calls_user |= nodes_[i].kind == Kind::call && nodes_[i].function->is_users();
    place[i] = result.nodes_.size();
    result.nodes_.push_back(std::move(nodes_[i]));
  }
  Slots slots(result.nodes_);
  result.blocks_ = slots.count();
  result.slots_ = std::move(slots).of();
  result.text_ = std::move(text);
  result.variables_ = std::move(variables_);
  result.parameters_ = std::move(parameters_);
  if (calls_user) result.library_ = std::move(library);
  return result;
}

}  // namespace netcl
