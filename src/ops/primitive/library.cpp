#include "ops/primitive/library.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "kernel/source_scan.h"
#include "ops/primitive/c_source.h"

namespace netcl {
namespace {

constexpr std::size_t kMostArguments = 26;  // $a ... $z
constexpr double kUlps = 4;                 // nobody knows

// ---- names of their own

class Renamer {
 public:
  Renamer(const CSource& source, const std::string& text)
      : names_(source.names.begin(), source.names.end()),
        prefix_(source.pastes ? ""
                              : fmt::format("u{}_", Sha256().update(text).hex().substr(0, 12))) {}

  const std::string& prefix() const { return prefix_; }

  std::string text(const std::vector<CToken>& tokens) const {
    auto renamed = tokens;
    for (std::size_t i = 0; i < renamed.size(); ++i) {
      auto& token = renamed[i];
      if (token.kind == CToken::Kind::directive)
        token.text = directive(token.text);
      else if (is_ours(renamed, i))
        token.text = prefix_ + token.text;
    }
    return joined(renamed);
  }

 private:
  // Members of structs and vectors keep their names.
  bool is_ours(const std::vector<CToken>& tokens, std::size_t i) const {
    return tokens[i].kind == CToken::Kind::word && names_.contains(tokens[i].text) &&
           (i == 0 || (!tokens[i - 1].is(".") && !tokens[i - 1].is("->")));
  }

  std::string directive(const std::string& line) const {
    if (prefix_.empty() || line.starts_with("#pragma") || line.starts_with("#include")) return line;
    auto words = c_tokens(std::string_view(line).substr(1));
    for (std::size_t i = 0; i < words.size(); ++i)
      if (is_ours(words, i)) words[i].text = prefix_ + words[i].text;
    std::string text = "#";
    for (std::size_t i = 0; i < words.size(); ++i)
      text += (i > 0 && words[i].space ? " " : "") + words[i].text;
    return text;
  }

  const std::set<std::string> names_;
  const std::string prefix_;
};

// ---- bodies for the host

// A conversion to the type of a parameter or result: "float", or an error.
std::string type_text(const CSource& source, const std::vector<CToken>& type,
                      const std::string& what) {
  std::string found;
  for (const auto& token : expanded_macros(source, type)) {
    if (token.is("const")) continue;
    static const std::string_view known[] = {"float", "double", "half",  "int",  "uint",
                                             "long",  "ulong",  "short", "char", "bool"};
    const bool is_known =
        std::find(std::begin(known), std::end(known), token.text) != std::end(known);
    check<ArgumentError>(is_known && found.empty(), "{} has the type {}", what, joined(type));
    found = token.text;
  }
  check<ArgumentError>(!found.empty(), "{} has no type", what);
  return found;
}

// The whole of a function as parse_c reads it.
std::string function_text(const CSource& source, const CFunction& function,
                          std::vector<CToken> body) {
  std::string text;
  for (const auto& parameter : function.parameters) {
    const auto type = type_text(source, parameter.type, "its parameter " + parameter.name);
    text += fmt::format("const {0} {1} = {1}; ", type, parameter.name);
  }
  const auto result = type_text(source, function.type, "its result");
  const auto found = std::find_if(body.begin(), body.end(),
                                  [](const CToken& token) { return token.is("return"); });
  if (found != body.end() && body.back().is(";")) {
    const auto at = found - body.begin();
    body.insert(body.end() - 1, {CToken::Kind::symbol, ")"});
    body.insert(body.begin() + at + 1, {CToken::Kind::symbol, fmt::format("({})(", result)});
  }
  return text + joined(body);
}

class Maker {
 public:
  Maker(const std::string& text, std::string before)
      : source_(read_c_source(text)), renamer_(source_, text), before_(std::move(before)) {}

  CLibrary run() {
    if (source_.names.empty()) return {};
    for (const auto& macro : source_.macros)
      if (!macro.is_variadic)
        add(macro.name, macro.takes_arguments ? macro.parameters.size() : 0, macro.takes_arguments);
    for (const auto& function : source_.functions)
      if (source_.macro(function.name) == nullptr && library_->find(function.name) == nullptr)
        add(function.name, function.parameters.size(), !function.is_constant);
    for (auto& function : library_->functions) complete(function);
    library_->preamble = preamble();
    return {library_, source_.pastes};
  }

 private:
  void add(const std::string& name, std::size_t arity, bool has_parameters) {
    if (arity > kMostArguments) return;
    ExpressionFunction function{name, static_cast<int>(arity), renamer_.prefix() + name, kUlps};
    if (has_parameters) {
      function.opencl += "(";
      for (std::size_t i = 0; i < arity; ++i)
        function.opencl += fmt::format("{}${}", i > 0 ? ", " : "", static_cast<char>('a' + i));
      function.opencl += ")";
    }
    library_->functions.push_back(std::move(function));
  }

  // Of overloads the one for double: the host computes in the type of the call anyway.
  const CFunction& chosen(const std::string& name) const {
    const CFunction* choice = nullptr;
    for (const auto& function : source_.functions) {
      if (function.name != name) continue;
      const bool wide = std::any_of(function.type.begin(), function.type.end(),
                                    [](const CToken& token) { return token.is("double"); });
      if (choice == nullptr || wide) choice = &function;
    }
    return *choice;
  }

  // The body, after those of the functions that it calls.
  void complete(ExpressionFunction& function) {
    if (function.body != nullptr || !function.why_no_body.empty()) return;
    function.why_no_body = "it calls itself";
    try {
      function.body = std::make_shared<const Expression>(body_of(function));
      function.why_no_body.clear();
    } catch (const ArgumentError& error) {
      function.why_no_body = error.what();
    }
  }

  Expression body_of(ExpressionFunction& function) {
    if (const auto* macro = source_.macro(function.name)) {
      std::vector<CToken> call{{CToken::Kind::word, macro->name}};
      if (macro->takes_arguments) {
        call.push_back({CToken::Kind::symbol, "("});
        for (std::size_t i = 0; i < macro->parameters.size(); ++i) {
          if (i > 0) call.push_back({CToken::Kind::symbol, ","});
          call.push_back({CToken::Kind::word, argument_name(i)});
        }
        call.push_back({CToken::Kind::symbol, ")"});
      }
      std::vector<std::string> variables;
      for (std::size_t i = 0; i < macro->parameters.size(); ++i)
        variables.push_back(argument_name(i));
      const auto body = expanded(call);
      return Expression::parse_c(function.name, "return " + joined(body) + ";", variables,
                                 *library_);
    }
    const auto& choice = chosen(function.name);
    std::vector<std::string> variables;
    for (const auto& parameter : choice.parameters) variables.push_back(parameter.name);
    const auto type = type_text(source_, choice.type, "its result");
    function.gives_integer = type != "float" && type != "double" && type != "half";
    return Expression::parse_c(function.name, function_text(source_, choice, expanded(choice.body)),
                               variables, *library_);
  }

  static std::string argument_name(std::size_t i) { return fmt::format("argument{}", i); }

  std::vector<CToken> expanded(std::vector<CToken> tokens) {
    auto result = expanded_macros(source_, std::move(tokens));
    for (const auto& token : result)
      for (auto& function : library_->functions)
        if (token.is(function.name)) complete(function);
    return result;
  }

  // Once per kernel, however often it is asked for.
  std::string preamble() const {
    const auto text = renamer_.text(source_.tokens);
    const auto guard =
        fmt::format("u{}", Sha256().update(before_).update(text).hex().substr(0, 16));
    std::string half;
    if (has_half_pointer(text))
      half = "#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#endif\n";
    return fmt::format("#ifndef {0}\n#define {0}\n{1}{2}{3}\n#endif\n", guard, half, before_, text);
  }

  const CSource source_;
  const Renamer renamer_;
  const std::string before_;
  std::shared_ptr<ExpressionLibrary> library_ = std::make_shared<ExpressionLibrary>();
};

}  // namespace

CLibrary make_library(const std::string& text, const std::string& before) {
  return Maker(text, before).run();
}

std::string library_text(const KernelSpec& spec) {
  std::string text = spec.preamble.value_or("");
  if (!text.empty()) text += '\n';
  const auto& flags = spec.extra_flags;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i].starts_with("-D")) continue;
    auto macro = flags[i].substr(2);
    if (macro.empty() && i + 1 < flags.size()) macro = flags[++i];
    const auto equals = macro.find('=');
    text += equals == macro.npos
                ? fmt::format("#define {} 1\n", macro)
                : fmt::format("#define {} {}\n", macro.substr(0, equals), macro.substr(equals + 1));
  }
  return text + spec.src;
}

}  // namespace netcl
