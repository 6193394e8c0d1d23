#include "ops/primitive/c_source.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace netcl {
namespace {

using Kind = CToken::Kind;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Joins continued lines and blanks comments out, so that a line is a line.
std::string plain_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto rest = source.substr(i);
    if (rest.starts_with("\\\n")) {
      ++i;
    } else if (rest.starts_with("\\\r\n")) {
      i += 2;
    } else if (rest.starts_with("//")) {
      while (i + 1 < source.size() && source[i + 1] != '\n') ++i;
      text += ' ';
    } else if (rest.starts_with("/*")) {
      const auto end = source.find("*/", i + 2);
      i = end == source.npos ? source.size() : end + 1;
      text += ' ';
    } else if (source[i] == '"' || source[i] == '\'') {
      const char quote = source[i];
      text += quote;
      for (++i; i < source.size() && source[i] != quote && source[i] != '\n'; ++i) {
        text += source[i];
        if (source[i] == '\\' && i + 1 < source.size()) text += source[++i];
      }
      if (i < source.size()) text += source[i];
    } else {
      text += source[i];
    }
  }
  return text;
}

std::size_t end_of_number(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (is_word(text[at]) || text[at] == '.' ||
          ((text[at] == '+' || text[at] == '-') && (text[at - 1] == 'e' || text[at - 1] == 'E'))))
    ++at;
  return at;
}

std::size_t end_of_literal(std::string_view text, std::size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

std::size_t end_of_symbol(std::string_view text, std::size_t at) {
  for (const std::string_view symbol :
       {"<<=", ">>=", "...", "##", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>",
        "->",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="})
    if (text.substr(at).starts_with(symbol)) return at + symbol.size();
  return at + 1;
}

std::string without_end_space(std::string_view line) {
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return std::string(line);
}

// ---- declarations

using Tokens = std::vector<CToken>;

// The place behind the group that opens at `at`.
std::size_t behind_group(const Tokens& tokens, std::size_t at) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    const auto& text = tokens[at].text;
    if (tokens[at].kind != Kind::symbol) continue;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if ((text == ")" || text == "]" || text == "}") && --depth == 0) return at + 1;
  }
  return at;
}

bool begins_type(const CToken& token) {
  return token.is("typedef") || token.is("struct") || token.is("union") || token.is("enum");
}

// One declaration at the top level, from `begin` to the returned place.
std::size_t behind_declaration(const Tokens& tokens, std::size_t begin) {
  const bool is_type = begins_type(tokens[begin]);
  bool has_value = false;
  for (auto at = begin; at < tokens.size();) {
    const auto& token = tokens[at];
    if (token.is(";")) return at + 1;
    has_value |= token.is("=");
    if (token.is("{")) {
      at = behind_group(tokens, at);
      // Of a function. Values and types go on to the semicolon.
      if (!is_type && !has_value) return at;
    } else if (token.is("(") || token.is("[")) {
      at = behind_group(tokens, at);
    } else {
      ++at;
    }
  }
  return tokens.size();
}

// Words that say nothing about the value.
bool is_qualifier(const CToken& token) {
  static const std::string_view words[] = {"static",     "inline",    "const",     "constant",
                                           "__constant", "private",   "__private", "extern",
                                           "__inline",   "__inline__"};
  return std::find(std::begin(words), std::end(words), token.text) != std::end(words);
}

Tokens without_attributes(const Tokens& tokens) {
  Tokens result;
  for (std::size_t i = 0; i < tokens.size();) {
    if (tokens[i].is("__attribute__") && i + 1 < tokens.size()) {
      i = behind_group(tokens, i + 1);
    } else if (tokens[i].kind == Kind::directive) {
      ++i;
    } else {
      result.push_back(tokens[i++]);
    }
  }
  return result;
}

Tokens without_qualifiers(Tokens tokens) {
  std::erase_if(tokens, is_qualifier);
  return tokens;
}

std::vector<CParameter> parameters_of(const Tokens& tokens) {
  std::vector<CParameter> parameters;
  Tokens one;
  const auto finish = [&] {
    one = without_qualifiers(std::move(one));
    if (!one.empty() && !(one.size() == 1 && one[0].is("void"))) {
      const auto name = one.back().text;
      one.pop_back();
      parameters.push_back({std::move(one), name});
    }
    one.clear();
  };
  for (const auto& token : tokens)
    if (token.is(","))
      finish();
    else
      one.push_back(token);
  finish();
  return parameters;
}

class Reader {
 public:
  CSource run(Tokens tokens) {
    for (std::size_t at = 0; at < tokens.size();) {
      if (tokens[at].kind == Kind::directive) {
        directive(tokens[at++]);
        continue;
      }
      const auto end = behind_declaration(tokens, at);
      declaration({tokens.begin() + static_cast<std::ptrdiff_t>(at),
                   tokens.begin() + static_cast<std::ptrdiff_t>(end)});
      at = end;
    }
    std::sort(source_.names.begin(), source_.names.end());
    source_.names.erase(std::unique(source_.names.begin(), source_.names.end()),
                        source_.names.end());
    return std::move(source_);
  }

 private:
  void directive(const CToken& token) {
    if (token.text.starts_with("#line")) return;
    source_.tokens.push_back(token);
    source_.pastes |= token.text.find("##") != token.text.npos;
    const auto words = c_tokens(std::string_view(token.text).substr(1));
    if (words.size() >= 2 && words[0].is("define")) define(words);
  }

  void define(const Tokens& words) {
    CMacro macro{words[1].text};
    std::size_t at = 2;
    if (at < words.size() && words[at].is("(") && !words[at].space) {
      macro.takes_arguments = true;
      for (++at; at < words.size() && !words[at].is(")"); ++at) {
        macro.is_variadic |= words[at].is("...");
        if (words[at].kind == Kind::word) macro.parameters.push_back(words[at].text);
      }
      ++at;
    }
    if (at < words.size())
      macro.body.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    source_.names.push_back(macro.name);
    for (auto& known : source_.macros)
      if (known.name == macro.name) {
        known.is_ambiguous |=
            joined(known.body) != joined(macro.body) || known.parameters != macro.parameters;
        return;
      }
    source_.macros.push_back(std::move(macro));
  }

  void declaration(const Tokens& tokens) {
    const auto brace = std::find_if(tokens.begin(), tokens.end(),
                                    [](const CToken& token) { return token.is("{"); });
    const bool is_kernel = std::any_of(tokens.begin(), brace, [](const CToken& token) {
      return token.is("kernel") || token.is("__kernel");
    });
    for (const auto& token : tokens) {
      if (token.kind == Kind::directive)
        // What a kernel defines may be used behind it.
        is_kernel&& token.text.starts_with("#pragma") ? void() : directive(token);
      else if (!is_kernel)
        source_.tokens.push_back(token);
    }
    if (!is_kernel) name_of(without_attributes(tokens));
  }

  void name_of(const Tokens& tokens) {
    if (tokens.empty()) return;
    if (begins_type(tokens[0])) return type(tokens);
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      if (tokens[i].is("(") && tokens[i - 1].kind == Kind::word) return function(tokens, i);
      if (tokens[i].is("=") || tokens[i].is("[") || tokens[i].is(";")) return constant(tokens, i);
    }
  }

  // `tokens[paren]` opens the parameters.
  void function(const Tokens& tokens, std::size_t paren) {
    const auto iterator = [&](std::size_t i) {
      return tokens.begin() + static_cast<std::ptrdiff_t>(i);
    };
    CFunction function{tokens[paren - 1].text};
    source_.names.push_back(function.name);
    const auto behind = behind_group(tokens, paren);
    // Only declared, or cut off.
    if (behind + 1 >= tokens.size() || !tokens[behind].is("{") || !tokens.back().is("}")) return;
    function.type = without_qualifiers({tokens.begin(), iterator(paren - 1)});
    function.parameters = parameters_of({iterator(paren + 1), iterator(behind - 1)});
    function.body.assign(iterator(behind + 1), tokens.end() - 1);
    source_.functions.push_back(std::move(function));
  }

  void constant(const Tokens& tokens, std::size_t at) {
    if (tokens[at - 1].kind != Kind::word) return;
    CFunction function{tokens[at - 1].text};
    source_.names.push_back(function.name);
    if (!tokens[at].is("=")) return;
    function.type =
        without_qualifiers({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at) - 1});
    function.is_constant = true;
    function.body = {{Kind::word, "return"}};
    function.body.insert(function.body.end(), tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                         tokens.end());
    source_.functions.push_back(std::move(function));
  }

  void type(const Tokens& tokens) {
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (!tokens[i].is("typedef") && begins_type(tokens[i]) && tokens[i + 1].kind == Kind::word)
        source_.names.push_back(tokens[i + 1].text);
    if (tokens[0].is("typedef") && tokens.size() > 2 &&
        tokens[tokens.size() - 2].kind == Kind::word)
      source_.names.push_back(tokens[tokens.size() - 2].text);
  }

  CSource source_;
};

}  // namespace

std::vector<CToken> c_tokens(std::string_view source) {
  const auto text = plain_lines(source);
  std::vector<CToken> tokens;
  bool line_start = true, space = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_space(c)) {
      line_start |= c == '\n';
      space = true;
      ++at;
      continue;
    }
    auto end = at + 1;
    auto kind = Kind::symbol;
    if (c == '#' && line_start) {
      end = std::min(text.find('\n', at), text.size());
      kind = Kind::directive;
    } else if (is_digit(c) || (c == '.' && at + 1 < text.size() && is_digit(text[at + 1]))) {
      end = end_of_number(text, at + 1);
      kind = Kind::number;
    } else if (is_word(c)) {
      while (end < text.size() && is_word(text[end])) ++end;
      kind = Kind::word;
    } else if (c == '"' || c == '\'') {
      end = end_of_literal(text, at);
      kind = Kind::literal;
    } else {
      end = end_of_symbol(text, at);
    }
    tokens.push_back({kind, without_end_space(std::string_view(text).substr(at, end - at)), space});
    // "# define" is "#define".
    if (kind == Kind::directive)
      while (tokens.back().text.size() > 1 && is_space(tokens.back().text[1]))
        tokens.back().text.erase(1, 1);
    line_start = space = false;
    at = end;
  }
  return tokens;
}

std::string joined(const std::vector<CToken>& tokens) {
  std::string text;
  for (const auto& token : tokens) {
    if (token.kind == Kind::directive) {
      if (!text.empty() && text.back() != '\n') text += '\n';
      text += token.text + '\n';
      continue;
    }
    if (token.space && !text.empty() && text.back() != '\n') text += ' ';
    text += token.text;
    if (token.is(";") || token.is("}") || token.is("{")) text += '\n';
  }
  return text;
}

const CMacro* CSource::macro(std::string_view name) const {
  const auto found =
      std::find_if(macros.begin(), macros.end(), [&](const auto& one) { return one.name == name; });
  return found == macros.end() ? nullptr : &*found;
}

CSource read_c_source(std::string_view source) { return Reader().run(c_tokens(source)); }

}  // namespace netcl
