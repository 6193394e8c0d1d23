// Forward differentiation: every node gets its derivative, once. Products with the constants 0, 1
// and -1 are written as what they are, also in the branches of ?:, so that a branch that does not
// count cannot bring in NaN (0 times infinity).
#include "ops/expression/derivative.h"

#include <map>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "ops/expression/builder.h"

namespace netcl {
namespace {

using Kind = Expression::Node::Kind;

struct Rule {
  const char* function;
  // Per argument, over the arguments a, b, c and the result y; "" is flat.
  std::vector<const char*> partials;
};

// Where two values meet, each gets half; the element-wise ops do the same.
#define LARGER \
  { "a > b ? 1 : (a == b ? 0.5 : 0)", "b > a ? 1 : (a == b ? 0.5 : 0)" }
#define SMALLER \
  { "a < b ? 1 : (a == b ? 0.5 : 0)", "b < a ? 1 : (a == b ? 0.5 : 0)" }
#define MAGNITUDE \
  { "a > 0 ? 1 : (a < 0 ? -1 : 0)" }

const std::vector<Rule>& rules() {
  static const auto* const all = new std::vector<Rule>{
      {"+", {"1", "1"}},
      {"-", {"1", "-1"}},
      {"*", {"b", "a"}},
      {"/", {"1 / b", "-y / b"}},
      {"negated", {"-1"}},
      {"(float)", {"1"}},
      {"ADD", {"1", "1"}},
      {"SUB", {"1", "-1"}},
      {"MUL", {"b", "a"}},
      {"DIV", {"1 / b", "-y / b"}},
      {"EXP", {"y"}},
      {"LOG", {"1 / a"}},
      {"SQRT", {"0.5 / y"}},
      {"TANH", {"1 - y * y"}},
      {"ABS", MAGNITUDE},
      {"RELU", {"a <= 0 ? 0 : 1"}},
      {"MAX", LARGER},
      {"MIN", SMALLER},
      {"acos", {"-1 / sqrt((1 - a) * (1 + a))"}},
      {"asin", {"1 / sqrt((1 - a) * (1 + a))"}},
      {"atan", {"1 / (1 + a * a)"}},
      {"atan2", {"b / (a * a + b * b)", "-a / (a * a + b * b)"}},
      {"cbrt", {"1 / (3 * y * y)"}},
      {"clamp",
       {"(a >= b || isnan(b)) && (a <= c || isnan(c)) ? 1 : 0",
        "(isnan(a) || b > a) && (b <= c || isnan(c)) ? 1 : 0", "c < fmax(a, b) ? 1 : 0"}},
      {"copysign", {"copysign(1, a) * copysign(1, b)", ""}},
      {"cos", {"-sin(a)"}},
      {"cosh", {"sinh(a)"}},
      {"erf", {"1.1283791670955126 * exp(-a * a)"}},
      {"erfc", {"-1.1283791670955126 * exp(-a * a)"}},
      {"exp", {"y"}},
      {"exp2", {"0.69314718055994531 * y"}},
      {"expm1", {"y + 1"}},
      {"fabs", MAGNITUDE},
      {"fma", {"b", "a", "1"}},
      // Unlike MAX they take the number of a number and NaN.
      {"fmax",
       {"a > b || isnan(b) ? 1 : (a == b ? 0.5 : 0)",
        "b > a || isnan(a) ? 1 : (a == b ? 0.5 : 0)"}},
      {"fmin",
       {"a < b || isnan(b) ? 1 : (a == b ? 0.5 : 0)",
        "b < a || isnan(a) ? 1 : (a == b ? 0.5 : 0)"}},
      {"fmod", {"1", "-trunc(a / b)"}},
      {"hypot", {"y == 0 ? 0 : a / y", "y == 0 ? 0 : b / y"}},
      {"log", {"1 / a"}},
      {"log10", {"0.43429448190325183 / a"}},
      {"log1p", {"1 / (1 + a)"}},
      {"log2", {"1.4426950408889634 / a"}},
      {"max", LARGER},
      {"min", SMALLER},
      {"pow", {"b == 0 ? 0 : b * pow(a, b - 1)", "(a == 0) & (b >= 0) ? 0 : y * log(a)"}},
      {"rsqrt", {"-0.5 * y / a"}},
      {"sin", {"cos(a)"}},
      {"sinh", {"cosh(a)"}},
      {"sqrt", {"0.5 / y"}},
      {"tan", {"1 + y * y"}},
      {"tanh", {"1 - y * y"}},
      {"absolute", MAGNITUDE},
      {"larger", LARGER},
      {"smaller", SMALLER},
      // Steps, flat but where they jump.
      {"ceil", {""}},
      {"floor", {""}},
      {"rint", {""}},
      {"round", {""}},
      {"sign", {""}},
      {"trunc", {""}}};
  return *all;
}

#undef LARGER
#undef SMALLER
#undef MAGNITUDE

using Partials = std::vector<std::optional<Expression>>;

// By function; one that is not there (comparisons, logic) is flat.
const Partials& partials_of(const ExpressionFunction& function) {
  static const auto* const parsed = [] {
    auto* made = new std::unordered_map<const ExpressionFunction*, Partials>();
    for (const auto& rule : rules()) {
      auto& partials = (*made)[&expression_function(rule.function)];
      for (const auto* text : rule.partials) {
        partials.emplace_back();
        if (*text != '\0')
          partials.back() = Expression::parse(rule.function, text, {"a", "b", "c", "y"});
      }
    }
    return made;
  }();
  static const auto* const flat = new Partials(3);
  const auto found = parsed->find(&function);
  if (found != parsed->end()) return found->second;
  check(function.is_condition, "[derivative] {} has no rule", function.name);
  return *flat;
}

class Differentiator {
 public:
  Differentiator(const Expression& of, std::size_t variable, const std::string& seed)
      : of_(of), variable_(variable), builder_(with(of.variables(), seed), of.parameters()) {}

  Expression run() {
    std::vector<std::size_t> variables;
    for (std::size_t i = 0; i <= of_.variables().size(); ++i)
      variables.push_back(builder_.variable(i));
    values_ = builder_.splice(of_, variables);
    slopes_.reserve(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) slopes_.push_back(slope(of_.nodes()[i], i));
    return builder_.finish(product(variables.back(), slopes_.back()));
  }

 private:
  static std::vector<std::string> with(std::vector<std::string> names, const std::string& more) {
    names.push_back(more);
    return names;
  }

  std::size_t slope(const Expression::Node& node, std::size_t index) {
    if (node.kind == Kind::variable) return builder_.number(node.index == variable_ ? 1 : 0);
    if (node.kind != Kind::call) return builder_.number(0);
    const auto& arguments = node.arguments;
    if (node.function->name == "?:")
      return choice(values_[arguments[0]], slopes_[arguments[1]], slopes_[arguments[2]]);
    // a, b, c, y; arguments that are not there are not named either.
    std::size_t known[4];
    for (std::size_t i = 0; i < 3; ++i) known[i] = values_[arguments[i < arguments.size() ? i : 0]];
    known[3] = values_[index];
    const auto& partials = partials_of(*node.function);
    auto total = builder_.number(0);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!partials[i] || is(slopes_[arguments[i]], 0)) continue;
      const auto partial = builder_.splice(*partials[i], known).back();
      total = sum(total, product(slopes_[arguments[i]], partial));
    }
    return total;
  }

  bool is(std::size_t node, double value) const { return builder_.is_number(node, value); }
  bool is_call(std::size_t node, std::string_view name) const {
    return builder_[node].kind == Kind::call && builder_[node].function->name == name;
  }
  bool is_unit(std::size_t node) const { return is(node, 0) || is(node, 1) || is(node, -1); }
  // A ?: with 0, 1 or -1 among its values. Remembered, as products are: paths through nested ones
  // are more than anyone can walk.
  bool is_mask(std::size_t node) {
    if (!is_call(node, "?:")) return false;
    if (const auto known = masks_.find(node); known != masks_.end()) return known->second;
    const auto arguments = builder_[node].arguments;
    const bool result = is_unit(arguments[1]) || is_unit(arguments[2]) || is_mask(arguments[1]) ||
                        is_mask(arguments[2]);
    masks_.emplace(node, result);
    return result;
  }

  std::size_t choice(std::size_t condition, std::size_t yes, std::size_t no) {
    return yes == no ? yes : builder_.call("?:", {condition, yes, no});
  }

  std::size_t sum(std::size_t a, std::size_t b) {
    if (is(a, 0)) return b;
    if (is(b, 0)) return a;
    return builder_.call("+", {a, b});
  }

  std::size_t negated(std::size_t a) {
    if (builder_[a].kind == Kind::number) return builder_.number(-builder_[a].number);
    return is_call(a, "negated") ? builder_[a].arguments[0] : builder_.call("negated", {a});
  }

  std::size_t product(std::size_t a, std::size_t b) {
    if (is(a, 0) || is(b, 0)) return builder_.number(0);
    if (is(a, 1)) return b;
    if (is(b, 1)) return a;
    if (is(a, -1)) return negated(b);
    if (is(b, -1)) return negated(a);
    const std::pair key{a, b};
    if (const auto known = products_.find(key); known != products_.end()) return known->second;
    const auto result = is_mask(a)   ? into_branches(b, a)
                        : is_mask(b) ? into_branches(a, b)
                                     : builder_.call("*", {a, b});
    products_.emplace(key, result);
    return result;
  }
  std::size_t into_branches(std::size_t factor, std::size_t mask) {
    const auto arguments = builder_[mask].arguments;  // a copy: the nodes grow
    return choice(arguments[0], product(factor, arguments[1]), product(factor, arguments[2]));
  }

  const Expression& of_;
  const std::size_t variable_;
  ExpressionBuilder builder_;
  std::vector<std::size_t> values_, slopes_;  // per node of the expression
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> products_;
  std::unordered_map<std::size_t, bool> masks_;
};

}  // namespace

Expression derivative(const Expression& expression, std::size_t variable, const std::string& seed) {
  check(expression.library() == nullptr, "[derivative] users' functions must be expanded first");
  return Differentiator(expression, variable, seed).run();
}

}  // namespace netcl
