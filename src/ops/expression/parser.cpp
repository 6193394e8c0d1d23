// Recursive descent, one function per level of precedence. Nesting is limited, so that no text can
// overflow the stack; long chains are loops.
#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "ops/expression/expression.h"

namespace netcl {
namespace {

constexpr std::size_t kLongest = 16384;  // characters
constexpr int kDeepest = 100;            // parentheses, calls, unary operators, ?: in ?:
constexpr std::size_t kShown = 60;       // characters on each side of the place in a message

struct Constant {
  std::string_view name;
  double value;
};
constexpr Constant kConstants[] = {{"INFINITY", std::numeric_limits<double>::infinity()},
                                   {"NAN", std::numeric_limits<double>::quiet_NaN()},
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

}  // namespace

class ExpressionParser {
 public:
  ExpressionParser(std::string_view where, Expression& expression)
      : where_(where), text_(expression.text_), result_(expression) {}

  void run() {
    if (text_.size() > kLongest)
      fail<ArgumentError>("[{}] an expression must have at most {} characters: {}", where_,
                          kLongest, text_.size());
    skip_space();
    if (at_ == text_.size()) error(at_, "the expression is empty");
    ternary();
    if (at_ < text_.size()) error(at_, "expected an operator or the end");
    result_.depth_ = stack_depth();
  }

 private:
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

  // Whether `symbol` comes next; then it is consumed. '<' is not the beginning of '<='.
  bool accept(std::string_view symbol) {
    if (!text_.substr(at_).starts_with(symbol)) return false;
    if ((symbol == "<" || symbol == ">" || symbol == "!") && at_ + 1 < text_.size() &&
        text_[at_ + 1] == '=')
      return false;
    at_ += symbol.size();
    skip_space();
    return true;
  }

  void expect(std::string_view symbol, const char* why) {
    if (!accept(symbol)) error(at_, fmt::format("expected '{}' {}", symbol, why));
  }

  std::size_t add(Expression::Node node) {
    result_.nodes_.push_back(node);
    return result_.nodes_.size() - 1;
  }

  std::size_t call(std::string_view name, std::array<std::size_t, 3> arguments) {
    return add({Expression::Node::Kind::call, 0, 0, function_called(name), arguments});
  }

  std::size_t ternary() {
    const Level level(*this);
    const auto condition = binary(0);
    if (!accept("?")) return condition;
    const auto yes = ternary();
    expect(":", "of ?:");
    const auto no = ternary();
    return call("?:", {condition, yes, no});
  }

  // Levels of precedence, loosest first; left to right.
  std::size_t binary(std::size_t precedence) {
    static constexpr std::string_view kOperators[][4] = {
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/"}};
    if (precedence == std::size(kOperators)) return unary();
    auto left = binary(precedence + 1);
    for (;;) {
      const auto& operators = kOperators[precedence];
      const auto found = std::find_if(std::begin(operators), std::end(operators),
                                      [&](auto op) { return !op.empty() && accept(op); });
      if (found == std::end(operators)) return left;
      const auto right = binary(precedence + 1);
      left = call(*found, {left, right, 0});
    }
  }

  std::size_t unary() {
    for (const std::string_view op : {"-", "!", "+"}) {
      if (!accept(op)) continue;
      const Level level(*this);
      const auto value = unary();
      return op == "+" ? value : call(op == "-" ? "negated" : op, {value, 0, 0});
    }
    return primary();
  }

  std::size_t primary() {
    if (accept("(")) {
      const auto inner = ternary();
      expect(")", "or an operator");
      return inner;
    }
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return number();
    if (at_ < text_.size() && is_letter(text_[at_])) return name();
    error(at_, at_ == text_.size() ? "it ends where a value is expected" : "expected a value");
  }

  std::size_t number() {
    const auto start = at_;
    double value = 0;
    const auto [end, code] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code == std::errc::invalid_argument) error(start, "expected a number");
    if (code != std::errc()) error(start, "the number is out of range");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && (text_[at_] == 'f' || text_[at_] == 'F')) ++at_;
    if (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
      error(at_, "expected an operator behind the number");
    skip_space();
    return add({Expression::Node::Kind::number, value});
  }

  std::size_t name() {
    const auto start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const auto word = text_.substr(start, at_ - start);
    skip_space();
    const auto& variables = result_.variables_;
    const auto found = std::find(variables.begin(), variables.end(), word);
    if (found != variables.end()) {
      Expression::Node node{Expression::Node::Kind::variable};
      node.variable = static_cast<std::size_t>(found - variables.begin());
      return add(node);
    }
    for (const auto& constant : kConstants)
      if (constant.name == word) return add({Expression::Node::Kind::number, constant.value});
    const auto* function = function_called(word);
    if (function == nullptr || function->is_operator()) unknown(start, word);
    if (!accept("("))
      error(at_, fmt::format("expected '(' and {} behind {}", arguments_text(*function), word));
    return function_call(start, *function);
  }

  std::size_t function_call(std::size_t start, const ExpressionFunction& function) {
    std::array<std::size_t, 3> arguments{};
    int count = 0;
    if (!accept(")")) {
      do {
        if (count == function.arity) wrong_count(at_, function);
        arguments[static_cast<std::size_t>(count++)] = ternary();
      } while (accept(","));
      expect(")", fmt::format("or ',' in the call of {}", function.name).c_str());
    }
    if (count != function.arity) wrong_count(start, function);
    return add({Expression::Node::Kind::call, 0, 0, &function, arguments});
  }

  static std::string arguments_text(const ExpressionFunction& function) {
    return fmt::format("{} argument{}", function.arity, function.arity == 1 ? "" : "s");
  }

  [[noreturn]] void wrong_count(std::size_t place, const ExpressionFunction& function) const {
    error(place, fmt::format("{} takes {}", function.name, arguments_text(function)));
  }

  [[noreturn]] void unknown(std::size_t place, std::string_view word) const {
    std::vector<std::string_view> names;
    for (const auto& function : expression_functions())
      if (!function.is_operator()) names.push_back(function.name);
    error(place,
          fmt::format("'{}' is unknown; there are the variables {}, and the functions {}",
                      word.substr(0, 40), join(result_.variables_, ", "), join(names, ", ")));
  }

  // How many blocks evaluation holds at once.
  std::size_t stack_depth() const {
    std::size_t now = 0, most = 0;
    for (const auto& node : result_.nodes_) {
      if (node.kind == Expression::Node::Kind::call)
        now -= static_cast<std::size_t>(node.function->arity);
      most = std::max(most, ++now);
    }
    return most;
  }

  const std::string_view where_, text_;
  Expression& result_;
  std::size_t at_ = 0;
  int level_ = 0;
};

Expression Expression::parse(std::string_view where, std::string_view text,
                             std::vector<std::string> variables) {
  Expression expression;
  expression.text_ = text;
  expression.variables_ = std::move(variables);
  ExpressionParser(where, expression).run();
  return expression;
}

}  // namespace netcl
