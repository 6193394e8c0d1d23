// The operators and functions of expressions. Each is spelled for the host (a, b, c) and for OpenCL
// ($a, $b, $c, the type V and K(x) of element programs).
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ops/expression/expression.h"

namespace netcl {
namespace {

template <class V, class F>
void block_loop(std::int64_t n, const V* a, const V* b, const V* c, V* out) {
  const F f{};
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
}

template <class F>
ExpressionFunction entry(const char* name, int arity, const char* opencl, double ulps, F) {
  return {name, arity, opencl, ulps, &block_loop<float, F>, &block_loop<double, F>};
}
template <class F>
ExpressionFunction condition(const char* name, int arity, const char* opencl, F f) {
  auto made = entry(name, arity, opencl, 0, f);
  made.is_condition = true;
  return made;
}
ExpressionFunction scalar_only(ExpressionFunction function) {
  function.vectors = false;
  return function;
}
ExpressionFunction unlisted(ExpressionFunction function) {
  function.is_listed = false;
  return function;
}

template <class V>
V larger(V a, V b) {
  return a != a || a > b ? a : b;
}
template <class V>
V smaller(V a, V b) {
  return a != a || a < b ? a : b;
}

#define HOST(...)                                                                      \
  []<class V>([[maybe_unused]] V a, [[maybe_unused]] V b, [[maybe_unused]] V c) -> V { \
    return static_cast<V>(__VA_ARGS__);                                                \
  }
#define SAME(name, arity, ulps, text, ...) entry(#name, arity, text, ulps, HOST(__VA_ARGS__))
// A function that both languages have.
#define MATH1(name, ulps) entry(#name, 1, #name "($a)", ulps, HOST(std::name(a)))
#define MATH2(name, ulps) entry(#name, 2, #name "($a, $b)", ulps, HOST(std::name(a, b)))

const std::vector<ExpressionFunction>& table() {
  static const auto* const all = new std::vector<ExpressionFunction>{
      entry("?:", 3, "($a != K(0) ? $b : $c)", 0, HOST(a != V(0) ? b : c)),
      condition("||", 2, "((($a != K(0)) | ($b != K(0))) ? K(1) : K(0))",
                HOST(a != V(0) || b != V(0))),
      condition("&&", 2, "((($a != K(0)) & ($b != K(0))) ? K(1) : K(0))",
                HOST(a != V(0) && b != V(0))),
      condition("!", 1, "($a == K(0) ? K(1) : K(0))", HOST(a == V(0))),
      condition("==", 2, "($a == $b ? K(1) : K(0))", HOST(a == b)),
      condition("!=", 2, "($a != $b ? K(1) : K(0))", HOST(a != b)),
      condition("<", 2, "($a < $b ? K(1) : K(0))", HOST(a < b)),
      condition("<=", 2, "($a <= $b ? K(1) : K(0))", HOST(a <= b)),
      condition(">", 2, "($a > $b ? K(1) : K(0))", HOST(a > b)),
      condition(">=", 2, "($a >= $b ? K(1) : K(0))", HOST(a >= b)),
      condition("^", 2, "((($a != K(0)) ^ ($b != K(0))) ? K(1) : K(0))",
                HOST((a != V(0)) != (b != V(0)))),
      entry("+", 2, "$a + $b", 1, HOST(a + b)), entry("-", 2, "$a - $b", 1, HOST(a - b)),
      entry("*", 2, "$a * $b", 1, HOST(a * b)), entry("/", 2, "$a / $b", 2.5, HOST(a / b)),
      entry("negated", 1, "-$a", 0, HOST(-a)),
      // What C makes of a double in a float; kernels compute it without the rounding.
      entry("(float)", 1, "$a", 0, HOST(static_cast<float>(a))),
      // The macros of PRIMITIVE_PREAMBLE; RELU, MAX and MIN keep NaN.
      SAME(ADD, 2, 1, "$a + $b", a + b), SAME(SUB, 2, 1, "$a - $b", a - b),
      SAME(MUL, 2, 1, "$a * $b", a * b), SAME(DIV, 2, 2.5, "$a / $b", a / b),
      SAME(EXP, 1, 3, "exp($a)", std::exp(a)), SAME(LOG, 1, 3, "log($a)", std::log(a)),
      SAME(SQRT, 1, 3, "sqrt($a)", std::sqrt(a)), SAME(TANH, 1, 5, "tanh($a)", std::tanh(a)),
      SAME(ABS, 1, 0, "fabs($a)", std::fabs(a)),
      SAME(RELU, 1, 0, "($a <= K(0) ? K(0) : $a)", a <= V(0) ? V(0) : a),
      SAME(MAX, 2, 0, "larger($a, $b)", larger(a, b)),
      SAME(MIN, 2, 0, "smaller($a, $b)", smaller(a, b)),
      // OpenCL C's.
      MATH1(acos, 4), MATH1(asin, 4), MATH1(atan, 5), MATH2(atan2, 6), MATH1(cbrt, 2),
      MATH1(ceil, 0), SAME(clamp, 3, 0, "fmin(fmax($a, $b), $c)", std::fmin(std::fmax(a, b), c)),
      MATH2(copysign, 0), scalar_only(MATH1(cos, 4)), MATH1(cosh, 4), MATH1(erf, 16),
      MATH1(erfc, 16), MATH1(exp, 3), MATH1(exp2, 3), MATH1(expm1, 3), MATH1(fabs, 0),
      MATH1(floor, 0), SAME(fma, 3, 1, "fma($a, $b, $c)", std::fma(a, b, c)), MATH2(fmax, 0),
      MATH2(fmin, 0), MATH2(fmod, 0), MATH2(hypot, 4),
      condition("isfinite", 1, "(fabs($a) < K(INFINITY) ? K(1) : K(0))", HOST(std::isfinite(a))),
      condition("isinf", 1, "(fabs($a) == K(INFINITY) ? K(1) : K(0))", HOST(std::isinf(a))),
      condition("isnan", 1, "($a != $a ? K(1) : K(0))", HOST(std::isnan(a))), MATH1(log, 3),
      MATH1(log10, 3), MATH1(log1p, 2), MATH1(log2, 3),
      SAME(max, 2, 0, "($a < $b ? $b : $a)", a < b ? b : a),
      SAME(min, 2, 0, "($b < $a ? $b : $a)", b < a ? b : a), MATH2(pow, 16), MATH1(rint, 0),
      MATH1(round, 0), SAME(rsqrt, 1, 2, "rsqrt($a)", V(1) / std::sqrt(a)),
      SAME(sign, 1, 0, "($a > K(0) ? K(1) : ($a < K(0) ? K(-1) : K(0)))",
           a > V(0) ? V(1) : (a < V(0) ? V(-1) : V(0))),
      scalar_only(MATH1(sin, 4)), MATH1(sinh, 4), MATH1(sqrt, 3), scalar_only(MATH1(tan, 5)),
      MATH1(tanh, 5), MATH1(trunc, 0),
      // As the table of element-wise ops writes them.
      unlisted(SAME(absolute, 1, 0, "fabs($a)", std::fabs(a))),
      unlisted(SAME(larger, 2, 0, "larger($a, $b)", larger(a, b))),
      unlisted(SAME(smaller, 2, 0, "smaller($a, $b)", smaller(a, b)))};
  return *all;
}

}  // namespace

bool ExpressionFunction::is_operator() const {
  return name == "negated" ||
         !((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));
}

std::span<const ExpressionFunction> expression_functions() { return table(); }

const ExpressionFunction& expression_function(std::string_view name) {
  static const auto* const by_name = [] {
    auto* made = new std::unordered_map<std::string_view, const ExpressionFunction*>();
    for (const auto& function : table()) made->emplace(function.name, &function);
    return made;
  }();
  return *by_name->at(name);
}

}  // namespace netcl
