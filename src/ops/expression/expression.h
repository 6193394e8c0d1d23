// Arithmetic expressions of users: C-like text, read into nodes that the host evaluates in blocks
// and that are written as statements for element programs. Nothing of the user's text reaches a
// compiler but through the nodes.
//
//   numbers (2, 1.5f, 1e-3, inf, nan), names of variables, INFINITY, NAN, M_PI, M_E
//   c ? x : y    || && !    == != < <= > >=    + - * / unary -    calls of known functions
//   | ^ &  of conditions, and K(x), absolute, larger, smaller: as the element-wise ops write them
//
// Every value is of the floating type of the computation: 1 / 2 is a half, and an f behind a number
// changes nothing. Comparisons and logic give 1 or 0; as a condition everything but 0 is true, also
// NaN. Both branches of ?: are evaluated.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/dtype.h"

namespace netcl {

class Expression;

template <class V>
using ExpressionBlock = void (*)(std::int64_t n, const V* a, const V* b, const V* c, V* out);

// An operator or a function that expressions may call.
struct ExpressionFunction {
  std::string name;  // operators: "+", "?:"
  int arity;
  std::string opencl;  // "$a + $b", for scalars and vectors of V
  double ulps;         // how far OpenCL C lets the result be off
  ExpressionBlock<float> f32 = nullptr;
  ExpressionBlock<double> f64 = nullptr;
  bool is_condition = false;  // gives 0 or 1
  bool is_listed = true;      // in messages
  bool vectors = true;        // false where drivers get vectors of it wrong: docs/devices.md

  // A user's function has no blocks but, where the host can evaluate it, a body over its arguments.
  std::shared_ptr<const Expression> body = nullptr;
  std::string why_no_body = {};
  bool gives_integer = false;

  bool is_operator() const;
  bool is_users() const { return f64 == nullptr; }
};

// All of netcl's: operators first, functions behind in the order in which messages list them.
std::span<const ExpressionFunction> expression_functions();
const ExpressionFunction& expression_function(std::string_view name);  // of one that is there

// Functions of a user, which expressions may call besides these.
struct ExpressionLibrary {
  std::deque<ExpressionFunction> functions;  // a deque keeps addresses
  std::string preamble;                      // OpenCL C that defines them

  const ExpressionFunction* find(std::string_view name) const;
};

class Expression {
 public:
  struct Node {
    enum class Kind : std::uint8_t { number, variable, parameter, call };
    Kind kind = Kind::number;
    double number = 0;
    std::size_t index = 0;  // of the variable or parameter
    const ExpressionFunction* function = nullptr;
    std::vector<std::size_t> arguments = {};  // nodes, of calls
  };

  // What a text may name. Parameters are numbers that are the same for all elements.
  struct Names {
    std::vector<std::string> variables;
    std::vector<std::string> parameters = {};
    std::shared_ptr<const ExpressionLibrary> library = nullptr;
  };

  // ArgumentError with `where`, the place and what was expected there.
  static Expression parse(std::string_view where, std::string_view text, Names names);
  static Expression parse(std::string_view where, std::string_view text,
                          std::vector<std::string> variables);
  // The body of a C function: "const float t = exp(x); return t / (1 + t);", of which the variables
  // are the parameters. Integers divide as in C. Calls of `library` become part of it.
  static Expression parse_c(std::string_view where, std::string_view text,
                            std::vector<std::string> variables, const ExpressionLibrary& library);

  const std::string& text() const { return text_; }  // empty when it was not parsed
  const std::vector<std::string>& variables() const { return variables_; }
  const std::vector<std::string>& parameters() const { return parameters_; }
  bool uses(std::size_t variable) const;
  // Arguments come before their calls; the last node is the whole.
  const std::vector<Node>& nodes() const { return nodes_; }
  // Of the users' functions that it calls; null when it calls none.
  const std::shared_ptr<const ExpressionLibrary>& library() const { return library_; }
  // Its nodes without values of numbers and names of variables: equal texts compute alike.
  std::string structure() const;

  // ---- other expressions
  // Users' functions replaced by their bodies; ArgumentError where one has none.
  Expression expanded(std::string_view where) const;
  // Numbers as parameters called names[values.size()], ...; their values are appended. Numbers for
  // which there is no name left stay.
  Expression with_numbers_as_parameters(std::span<const std::string> names,
                                        std::vector<double>& values) const;
  // Variable k of the result is variable order[k] of this; those left out must not be used.
  Expression with_variables(std::span<const std::size_t> order) const;
  // Only the parameters that it uses; with other names where these are given.
  Expression with_used_parameters(std::span<const std::string> names = {}) const;

  // ---- values; of expressions without users' functions
  double evaluate(std::span<const double> variables, std::span<const double> parameters = {}) const;
  // `n` elements of every variable to `n` results, node by node. The result is in `scratch` (which
  // has scratch_blocks() * n elements) or is one of the variables.
  template <class V>
  const V* evaluate_block(std::int64_t n, const V* const* variables, const V* parameters,
                          V* scratch) const;
  std::size_t scratch_blocks() const { return blocks_; }

  // Statements for an ElementProgram, and the expression of the result.
  struct Code {
    std::vector<std::string> statements;  // "const V t0 = a * b;"
    std::string result;
  };
  Code to_opencl(DType compute, std::string_view prefix = "t") const;
  Code to_opencl(DType compute, std::string_view prefix, std::span<const std::string> variables,
                 std::span<const std::string> parameters) const;

  bool takes_vectors() const;  // whether V may be a vector
  // The sum of what the functions may be off: an estimate for values about 1.
  double ulps() const;

 private:
  friend class ExpressionBuilder;
  std::string text_;
  std::vector<std::string> variables_, parameters_;
  std::shared_ptr<const ExpressionLibrary> library_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> slots_;  // of the scratch memory, per node
  std::size_t blocks_ = 0;
};

}  // namespace netcl
