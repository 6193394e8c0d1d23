// What an OpenCL C source defines besides its kernels: macros, functions, constants. Read without a
// compiler, by tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace netcl {

struct CToken {
  enum class Kind { word, number, literal, symbol, directive };
  Kind kind;
  std::string text;   // of a directive: the whole line, "#define A 1", its continuations joined
  bool space = true;  // before it

  bool is(std::string_view what) const { return text == what; }
};

// Without comments.
std::vector<CToken> c_tokens(std::string_view source);
std::string joined(const std::vector<CToken>& tokens);

struct CMacro {
  std::string name;
  bool takes_arguments = false;
  bool is_variadic = false;
  std::vector<std::string> parameters;
  std::vector<CToken> body;
  bool is_ambiguous = false;  // defined again in another way
};

struct CParameter {
  std::vector<CToken> type;
  std::string name;
};

struct CFunction {
  std::string name;
  std::vector<CToken> type;
  std::vector<CParameter> parameters;
  std::vector<CToken> body;  // between the braces
  bool is_constant = false;  // "constant float k = 2;", which is like a function that returns it
};

struct CSource {
  std::vector<CMacro> macros;
  std::vector<CFunction> functions;  // overloads are several
  std::vector<std::string> names;    // everything that it defines
  std::vector<CToken> tokens;        // all but the kernels
  bool pastes = false;               // there is a ##

  const CMacro* macro(std::string_view name) const;
};

CSource read_c_source(std::string_view source);

// The tokens with all macros replaced, as a C preprocessor does it. ArgumentError where that is not
// possible here, with the reason alone.
std::vector<CToken> expanded_macros(const CSource& source, std::vector<CToken> tokens);

}  // namespace netcl
