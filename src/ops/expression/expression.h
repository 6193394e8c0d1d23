// Arithmetic expressions of users: C-like text, read into a tree that the host evaluates in blocks
// and that is written as statements for element programs. Nothing of the user's text reaches a
// compiler but through the tree.
//
//   numbers (2, 1.5f, 1e-3), names of variables, INFINITY, NAN, M_PI, M_E
//   c ? x : y    || && !    == != < <= > >=    + - * / unary -    calls of known functions
//
// Every value is of the floating type of the computation: 1 / 2 is a half, and an f behind a number
// changes nothing. Comparisons and logic give 1 or 0; as a condition everything but 0 is true, also
// NaN. Both branches of ?: are evaluated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/dtype.h"

namespace netcl {

template <class V>
using ExpressionBlock = void (*)(std::int64_t n, const V* a, const V* b, const V* c, V* out);

// An operator or a function that expressions may call.
struct ExpressionFunction {
  std::string_view name;  // operators: "+", "?:"
  int arity;
  const char* opencl;  // "$a + $b", for scalars and vectors of V
  double ulps;         // how far OpenCL C lets the result be off
  ExpressionBlock<float> f32;
  ExpressionBlock<double> f64;

  bool is_operator() const;
};

// All of them: operators first, functions behind in the order in which messages list them.
std::span<const ExpressionFunction> expression_functions();

class Expression {
 public:
  struct Node {
    enum class Kind : std::uint8_t { number, variable, call };
    Kind kind = Kind::number;
    double number = 0;
    std::size_t variable = 0;
    const ExpressionFunction* function = nullptr;
    std::array<std::size_t, 3> arguments{};  // nodes, of calls
  };

  // The tree of `text` over the variables. ArgumentError with `where`, the place and what was
  // expected there.
  static Expression parse(std::string_view where, std::string_view text,
                          std::vector<std::string> variables);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& variables() const { return variables_; }
  bool uses(std::size_t variable) const;
  // Arguments come before their calls; the last node is the whole.
  const std::vector<Node>& nodes() const { return nodes_; }

  double evaluate(std::span<const double> values) const;
  // `n` elements of every variable to `n` results, node by node. The result is in `scratch` (which
  // has scratch_blocks() * n elements) or is one of the variables.
  template <class V>
  const V* evaluate_block(std::int64_t n, const V* const* variables, V* scratch) const;
  std::size_t scratch_blocks() const { return depth_; }

  // Statements for an ElementProgram, and the expression of the result.
  struct Code {
    std::vector<std::string> statements;  // "const V t0 = a * b;"
    std::string result;
  };
  Code to_opencl(DType compute, std::string_view prefix = "t") const;

  // The sum of what the functions may be off: an estimate for values about 1.
  double ulps() const;

 private:
  friend class ExpressionParser;
  std::string text_;
  std::vector<std::string> variables_;
  std::vector<Node> nodes_;
  std::size_t depth_ = 0;  // of the stack that evaluation needs
};

}  // namespace netcl
