// Macro expansion. Every token remembers the macros that it came out of, which are not replaced in
// it again.
#include <algorithm>
#include <deque>

#include "base/check.h"
#include "ops/primitive/c_source.h"

namespace netcl {
namespace {

constexpr std::size_t kMostTokens = 20000;
constexpr int kDeepest = 100;

struct Hidden {
  CToken token;
  std::vector<std::string> hidden;

  bool hides(const std::string& name) const {
    return std::find(hidden.begin(), hidden.end(), name) != hidden.end();
  }
};
using Stream = std::deque<Hidden>;

class Expander {
 public:
  explicit Expander(const CSource& source) : source_(source) {}

  Stream run(Stream in) {
    Stream out;
    while (!in.empty()) {
      auto first = std::move(in.front());
      in.pop_front();
      const auto* macro =
          first.token.kind == CToken::Kind::word ? source_.macro(first.token.text) : nullptr;
      const bool called = !in.empty() && in.front().token.is("(");
      if (macro == nullptr || first.hides(macro->name) || (macro->takes_arguments && !called)) {
        out.push_back(std::move(first));
        count(1);
        continue;
      }
      refuse(*macro);
      auto body = macro->takes_arguments ? with_arguments(*macro, in) : plain(*macro);
      for (auto& token : body) {
        token.hidden.insert(token.hidden.end(), first.hidden.begin(), first.hidden.end());
        token.hidden.push_back(macro->name);
      }
      count(body.size());
      in.insert(in.begin(), std::make_move_iterator(body.begin()),
                std::make_move_iterator(body.end()));
    }
    return out;
  }

 private:
  // A few lines of macros can stand for more text than there is memory.
  void count(std::size_t tokens) {
    tokens_ += tokens;
    check<ArgumentError>(tokens_ <= kMostTokens, "its macros grow to more than {} tokens",
                         kMostTokens);
  }

  static void refuse(const CMacro& macro) {
    check<ArgumentError>(!macro.is_ambiguous, "{} is defined in more than one way", macro.name);
    check<ArgumentError>(!macro.is_variadic, "{} has a variable number of arguments", macro.name);
    for (const auto& token : macro.body)
      check<ArgumentError>(!token.is("#") && !token.is("##"), "{} uses {}", macro.name, token.text);
  }

  static Stream plain(const CMacro& macro) {
    Stream body;
    for (const auto& token : macro.body) body.push_back({token, {}});
    return body;
  }

  Stream with_arguments(const CMacro& macro, Stream& in) {
    std::vector<Stream> arguments(1);
    in.pop_front();
    for (int depth = 1; depth > 0;) {
      check<ArgumentError>(!in.empty(), "a call of {} does not end", macro.name);
      auto next = std::move(in.front());
      in.pop_front();
      if (next.token.is("(")) ++depth;
      if (next.token.is(")") && --depth == 0) break;
      if (next.token.is(",") && depth == 1)
        arguments.emplace_back();
      else
        arguments.back().push_back(std::move(next));
    }
    if (macro.parameters.empty() && arguments[0].empty()) arguments.clear();
    check<ArgumentError>(arguments.size() == macro.parameters.size(),
                         "{} takes {} arguments, not {}", macro.name, macro.parameters.size(),
                         arguments.size());
    check<ArgumentError>(++depth_ < kDeepest, "its macros are nested deeper than {}", kDeepest);
    for (auto& argument : arguments) argument = run(std::move(argument));
    --depth_;
    Stream body;
    for (const auto& token : macro.body) {
      const auto found = std::find(macro.parameters.begin(), macro.parameters.end(), token.text);
      if (found == macro.parameters.end()) {
        body.push_back({token, {}});
        continue;
      }
      const auto& argument = arguments[static_cast<std::size_t>(found - macro.parameters.begin())];
      count(argument.size());
      body.insert(body.end(), argument.begin(), argument.end());
    }
    return body;
  }

  const CSource& source_;
  std::size_t tokens_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<CToken> expanded_macros(const CSource& source, std::vector<CToken> tokens) {
  Stream stream;
  for (auto& token : tokens) stream.push_back({std::move(token), {}});
  std::vector<CToken> result;
  for (auto& one : Expander(source).run(std::move(stream))) {
    one.token.space = true;
    result.push_back(std::move(one.token));
  }
  return result;
}

}  // namespace netcl
