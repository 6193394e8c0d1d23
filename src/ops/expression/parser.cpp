// Recursive descent, one function per level of precedence. Nesting is limited, so that no text can
// overflow the stack; long chains are loops.
#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "base/near_names.h"
#include "ops/expression/builder.h"

namespace netcl {
namespace {

constexpr std::size_t kLongest = 16384;  // characters
constexpr int kDeepest = 100;            // parentheses, calls, unary operators, ?: in ?:
constexpr std::size_t kShown = 60;       // characters on each side of the place in a message
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Constant {
  std::string_view name;
  double value;
};
constexpr Constant kConstants[] = {{"INFINITY", kInfinity},
                                   {"NAN", kNaN},
                                   {"inf", kInfinity},
                                   {"infinity", kInfinity},
                                   {"nan", kNaN},
                                   {"M_PI", std::numbers::pi},
                                   {"M_PI_F", std::numbers::pi},
                                   {"M_E", std::numbers::e},
                                   {"M_E_F", std::numbers::e}};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

const ExpressionFunction* function_called(std::string_view name) {
  for (const auto& function : expression_functions())
    if (function.name == name) return &function;
  return nullptr;
}

// A number that no double holds: infinity when it is too large, 0 when it is too small.
double beyond_range(std::string_view digits) {
  const auto e = digits.find_first_of("eE");
  if (e != digits.npos) return digits.substr(e + 1).starts_with('-') ? 0 : kInfinity;
  return digits.find_first_not_of('0') == digits.find('.') ? 0 : kInfinity;
}

enum class CType : std::uint8_t { none, single, wide, integer };

CType c_type(std::string_view word) {
  if (word == "float" || word == "half") return CType::single;
  if (word == "double") return CType::wide;
  for (const auto* name : {"int", "uint", "long", "ulong", "short", "char", "bool"})
    if (word == name) return CType::integer;
  return CType::none;
}

}  // namespace

class ExpressionParser {
 public:
  ExpressionParser(std::string_view where, std::string_view text,
                   const std::vector<std::string>& variables,
                   const std::vector<std::string>& parameters, const ExpressionLibrary* library,
                   bool is_c)
      : where_(where),
        text_(text),
        variables_(variables),
        parameters_(parameters),
        library_(library),
        is_c_(is_c),
        builder_(variables, parameters) {}

  std::size_t expression() {
    begin();
    const auto value = ternary();
    if (at_ < text_.size()) error(at_, "expected an operator or the end");
    return value.node;
  }

  // Declarations with initial values, then return.
  std::size_t body() {
    begin();
    for (;;) {
      const auto start = at_;
      auto word = next_word();
      if (word == "return") {
        const auto value = ternary();
        expect(";", "behind return");
        if (at_ < text_.size()) error(at_, "expected the end behind return");
        return value.node;
      }
      while (word == "const" || word == "__private" || word == "private") word = next_word();
      const auto type = c_type(word);
      if (type == CType::none) error(start, "expected a constant with a value, or return");
      const auto name = next_word();
      if (name.empty()) error(at_, "expected a name");
      expect("=", "and the value of the constant");
      locals_.emplace_back(name, converted(ternary(), type));
      expect(";", "behind the constant");
    }
  }

  ExpressionBuilder& builder() { return builder_; }

 private:
  // In C an integer divides as one; in expressions of users everything is floating.
  struct Value {
    std::size_t node = 0;
    bool is_integer = false;
  };

  // One more level while alive.
  class Level {
   public:
    explicit Level(ExpressionParser& parser) : parser_(parser) {
      if (++parser.level_ > kDeepest)
        parser.error(parser.at_, fmt::format("nested deeper than {} levels", kDeepest));
    }
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

  void begin() {
    if (text_.size() > kLongest)
      fail<ArgumentError>("[{}] an expression must have at most {} characters: {}", where_,
                          kLongest, text_.size());
    skip_space();
    if (at_ == text_.size()) error(at_, "the expression is empty");
  }

  // The text around a place with a caret below it.
  [[noreturn]] void error(std::size_t place, const std::string& problem) const {
    const auto begin = place > kShown ? place - kShown : 0;
    const auto end = std::min(text_.size(), place + kShown);
    std::string shown(text_.substr(begin, end - begin));
    for (auto& c : shown)  // one character, one column
      if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126)
        c = is_space(c) ? ' ' : '?';
    const std::string before = begin > 0 ? "..." : "";
    fail<ArgumentError>("[{}] cannot read the expression: {}\n  {}{}{}\n  {}^", where_, problem,
                        before, shown, end < text_.size() ? "..." : "",
                        std::string(before.size() + place - begin, ' '));
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  // Whether `symbol` comes next; then it is consumed. '<' is not the beginning of '<=', nor '|' of
  // '||'.
  bool accept(std::string_view symbol) {
    if (!text_.substr(at_).starts_with(symbol)) return false;
    const char next = at_ + symbol.size() < text_.size() ? text_[at_ + symbol.size()] : '\0';
    if ((symbol == "<" || symbol == ">" || symbol == "!" || symbol == "=") && next == '=')
      return false;
    if ((symbol == "|" || symbol == "&") && (next == symbol[0] || next == '=')) return false;
    at_ += symbol.size();
    skip_space();
    return true;
  }

  void expect(std::string_view symbol, const std::string& why) {
    if (!accept(symbol)) error(at_, fmt::format("expected '{}' {}", symbol, why));
  }

  std::string_view next_word() {
    const auto start = at_;
    if (at_ < text_.size() && !is_digit(text_[at_]))
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const auto word = text_.substr(start, at_ - start);
    skip_space();
    return word;
  }

  Value converted(Value value, CType type) {
    if (type == CType::integer)
      return {value.is_integer ? value.node : builder_.call("trunc", {value.node}), true};
    return {type == CType::single && !value.is_integer ? builder_.call("(float)", {value.node})
                                                       : value.node,
            false};
  }

  Value ternary() {
    const Level level(*this);
    const auto condition = binary(0);
    if (!accept("?")) return condition;
    const auto yes = ternary();
    expect(":", "of ?:");
    const auto no = ternary();
    return {builder_.call("?:", {condition.node, yes.node, no.node}),
            yes.is_integer && no.is_integer};
  }

  // Levels of precedence, loosest first; left to right.
  Value binary(std::size_t precedence) {
    static constexpr std::string_view kOperators[][4] = {
        {"||"},     {"&&"},    {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
        {"+", "-"}, {"*", "/"}};
    if (precedence == std::size(kOperators)) return unary();
    auto left = binary(precedence + 1);
    for (;;) {
      const auto place = at_;
      const auto& operators = kOperators[precedence];
      const auto found = std::find_if(std::begin(operators), std::end(operators),
                                      [&](auto op) { return !op.empty() && accept(op); });
      if (found == std::end(operators)) return left;
      left = combined(place, *found, left, binary(precedence + 1));
    }
  }

  Value combined(std::size_t place, std::string_view op, Value left, Value right) {
    if (op == "|" || op == "&" || op == "^") {
      if (!is_condition(left) || !is_condition(right))
        error(place, fmt::format("{} is for conditions", op));
      op = op == "|" ? "||" : op == "&" ? "&&" : op;
    }
    const auto& function = expression_function(op);
    const bool integers = is_c_ && left.is_integer && right.is_integer;
    auto node = builder_.call(function, {left.node, right.node});
    if (integers && op == "/") node = builder_.call("trunc", {node});
    return {node, function.is_condition || integers};
  }

  bool is_condition(Value value) const {
    const auto& node = builder_[value.node];
    return node.kind == Expression::Node::Kind::call && node.function->is_condition;
  }

  Value unary() {
    for (const std::string_view op : {"-", "!", "+"}) {
      if (!accept(op)) continue;
      const Level level(*this);
      const auto value = unary();
      if (op == "+") return value;
      if (op == "-" && builder_[value.node].kind == Expression::Node::Kind::number)
        return {builder_.number(-builder_[value.node].number), value.is_integer};
      return {builder_.call(op == "-" ? "negated" : op, {value.node}),
              value.is_integer || op == "!"};
    }
    return primary();
  }

  Value primary() {
    if (accept("(")) {
      if (const auto type = cast(); type != CType::none) {
        const Level level(*this);
        return converted(unary(), type);
      }
      const auto inner = ternary();
      expect(")", "or an operator");
      return inner;
    }
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return number();
    if (at_ < text_.size() && is_letter(text_[at_])) return name();
    error(at_, at_ == text_.size() ? "it ends where a value is expected" : "expected a value");
  }

  // "float)" behind a parenthesis.
  CType cast() {
    if (!is_c_) return CType::none;
    const auto start = at_;
    const auto type = c_type(next_word());
    if (type == CType::none) {
      at_ = start;
      return type;
    }
    expect(")", "of the conversion");
    return type;
  }

  Value number() {
    const auto start = at_;
    double value = 0;
    const auto [end, code] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code == std::errc::invalid_argument) error(start, "expected a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    const auto digits = text_.substr(start, at_ - start);
    if (code == std::errc::result_out_of_range) value = beyond_range(digits);
    bool is_integer = digits.find_first_not_of("0123456789") == digits.npos;
    if (at_ < text_.size() && (text_[at_] == 'f' || text_[at_] == 'F')) {
      ++at_;
      is_integer = false;
      if (is_c_) value = static_cast<float>(value);
    }
    if (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
      error(at_, "expected an operator behind the number");
    skip_space();
    return {builder_.number(value), is_integer};
  }

  Value name() {
    const auto start = at_;
    const auto word = next_word();
    for (auto local = locals_.rbegin(); local != locals_.rend(); ++local)
      if (local->first == word) return local->second;
    if (const auto i = index_of(variables_, word); i < variables_.size())
      return {builder_.variable(i)};
    if (const auto i = index_of(parameters_, word); i < parameters_.size())
      return {builder_.parameter(i)};
    // The user's own come first, and may hide ours.
    const auto* users = library_ != nullptr ? library_->find(word) : nullptr;
    if (users != nullptr && (users->arity == 0 && !text_.substr(at_).starts_with('(')))
      return called(*users, {});
    if (users == nullptr) {
      for (const auto& constant : kConstants)
        if (constant.name == word) return {builder_.number(constant.value)};
      if (word == "K") return in_compute_type();
    }
    const auto* function = users != nullptr ? users : function_called(word);
    if (function == nullptr || function->is_operator()) unknown(start, word);
    if (!accept("("))
      error(at_, fmt::format("expected '(' and {} behind {}", arguments_text(*function), word));
    return function_call(start, *function);
  }

  static std::size_t index_of(const std::vector<std::string>& names, std::string_view word) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), word) - names.begin());
  }

  // K(x): everything is of the compute type already.
  Value in_compute_type() {
    expect("(", "behind K");
    const auto value = ternary();
    expect(")", "of K");
    return {value.node};
  }

  Value function_call(std::size_t start, const ExpressionFunction& function) {
    std::vector<std::size_t> arguments;
    const auto arity = static_cast<std::size_t>(function.arity);
    if (!accept(")")) {
      do {
        if (arguments.size() == arity) wrong_count(at_, function);
        arguments.push_back(ternary().node);
      } while (accept(","));
      expect(")", fmt::format("or ',' in the call of {}", function.name));
    }
    if (arguments.size() != arity) wrong_count(start, function);
    return called(function, std::move(arguments));
  }

  Value called(const ExpressionFunction& function, std::vector<std::size_t> arguments) {
    const auto node = is_c_ && function.is_users()
                          ? builder_.inlined(where_, function, std::move(arguments))
                          : builder_.call(function, std::move(arguments));
    return {node, function.gives_integer || function.is_condition};
  }

  static std::string arguments_text(const ExpressionFunction& function) {
    return fmt::format("{} argument{}", function.arity, function.arity == 1 ? "" : "s");
  }

  [[noreturn]] void wrong_count(std::size_t place, const ExpressionFunction& function) const {
    error(place, fmt::format("{} takes {}", function.name, arguments_text(function)));
  }

  [[noreturn]] void unknown(std::size_t place, std::string_view word) const {
    std::vector<std::string> names;
    if (library_ != nullptr)
      for (const auto& function : library_->functions) names.push_back(function.name);
    for (const auto& function : expression_functions())
      if (!function.is_operator() && function.is_listed) names.push_back(function.name);
    auto all = names;
    for (const auto* more : {&variables_, &parameters_})
      all.insert(all.end(), more->begin(), more->end());
    const auto near = near_names(word, all);
    error(place, fmt::format("'{}' is unknown; there are the variables {}, and the functions {}{}",
                             word.substr(0, 40), join(variables_, ", "), join(names, ", "),
                             near.empty() ? "" : "; did you mean " + join(near, " or ") + "?"));
  }

  const std::string_view where_, text_;
  const std::vector<std::string>&variables_, &parameters_;
  const ExpressionLibrary* const library_;
  const bool is_c_;
  ExpressionBuilder builder_;
  std::vector<std::pair<std::string_view, Value>> locals_;
  std::size_t at_ = 0;
  int level_ = 0;
};

Expression Expression::parse(std::string_view where, std::string_view text, Names names) {
  ExpressionParser parser(where, text, names.variables, names.parameters, names.library.get(),
                          false);
  const auto root = parser.expression();
  return parser.builder().finish(root, std::string(text), std::move(names.library));
}

Expression Expression::parse(std::string_view where, std::string_view text,
                             std::vector<std::string> variables) {
  return parse(where, text, Names{std::move(variables)});
}

Expression Expression::parse_c(std::string_view where, std::string_view text,
                               std::vector<std::string> variables,
                               const ExpressionLibrary& library) {
  const std::vector<std::string> no_parameters;
  ExpressionParser parser(where, text, variables, no_parameters, &library, true);
  const auto root = parser.body();
  return parser.builder().finish(root, std::string(text));
}

}  // namespace netcl
