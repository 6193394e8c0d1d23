// Puts the nodes of an expression together. Equal nodes are one: what occurs twice is computed
// once.
#pragma once

#include <span>
#include <unordered_map>

#include "ops/expression/expression.h"

namespace netcl {

class ExpressionBuilder {
 public:
  using Node = Expression::Node;
  ExpressionBuilder(std::vector<std::string> variables, std::vector<std::string> parameters);

  std::size_t number(double value);
  std::size_t variable(std::size_t index);
  std::size_t parameter(std::size_t index);
  std::size_t call(const ExpressionFunction& function, std::vector<std::size_t> arguments);
  std::size_t call(std::string_view name, std::vector<std::size_t> arguments);
  // A call of a user's function as the nodes of its body. ArgumentError with `where` if it has
  // none.
  std::size_t inlined(std::string_view where, const ExpressionFunction& function,
                      std::vector<std::size_t> arguments);
  // The nodes of another expression with these nodes for its variables; its parameters are ours.
  // Returns the node of each of them.
  std::vector<std::size_t> splice(const Expression& other, std::span<const std::size_t> variables);

  const Node& operator[](std::size_t node) const { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }
  bool is_number(std::size_t node, double value) const;

  // What `root` needs, in order. Call it once.
  Expression finish(std::size_t root, std::string text = {},
                    std::shared_ptr<const ExpressionLibrary> library = nullptr);

 private:
  std::size_t add(Node node);

  std::vector<std::string> variables_, parameters_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> known_;  // by content
};

}  // namespace netcl
