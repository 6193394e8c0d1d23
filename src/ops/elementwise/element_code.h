// An expression that is both: text for OpenCL C, and compiled loops over blocks for the host. One
// spelling serves both languages, so the backends cannot drift apart.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/wrapping.h"

namespace netcl {

// What an expression may name: operands, the result and its gradient (in gradients), scalars.
enum ElementName { kA, kB, kC, kY, kDy, kElementNames };
inline constexpr const char* kElementNameText[] = {"a", "b", "c", "y", "dy"};

template <class V>
using BlockFunction = void (*)(std::int64_t n, const V* const* in, V p, V q, V* out);

struct ElementCode {
  const char* text = nullptr;
  BlockFunction<float> f32 = nullptr;
  BlockFunction<double> f64 = nullptr;
  BlockFunction<std::int32_t> i32 = nullptr;
  BlockFunction<std::int64_t> i64 = nullptr;

  explicit operator bool() const { return text != nullptr; }
  template <class V>
  BlockFunction<V> block() const {
    if constexpr (std::is_same_v<V, float>) return f32;
    if constexpr (std::is_same_v<V, double>) return f64;
    if constexpr (std::is_same_v<V, std::int32_t>) return i32;
    if constexpr (std::is_same_v<V, std::int64_t>) return i64;
  }
  bool names(ElementName name) const;  // does the text mention it?
};

namespace element_math {

using std::ceil, std::cos, std::floor, std::log, std::pow, std::rint, std::sin, std::sqrt;

// The functions of float_math.cl, which compilers make vectors of; the library's of doubles.
namespace floats {

#define FUNCTION [[gnu::always_inline]] inline
#define FV float
#define IV std::int32_t
#define FN(name) name##_of
#define AS_FV(x) std::bit_cast<float>(x)
#define AS_IV(x) std::bit_cast<std::int32_t>(x)
#define FLOATS_OF(x) static_cast<float>(x)
// Fused where processors have it, a call elsewhere.
#define FMA(x, y, z) ((x) * (y) + (z))
#define SQUARE_REST(x, s) square_rest(x, s)
// x in two halves, of which all products are exact.
FUNCTION float square_rest(float x, float square) {
  const float upper = AS_FV(AS_IV(x) & ~0xfff), lower = x - upper;
  return ((upper * upper - square) + 2 * upper * lower) + lower * lower;
}
#include "ops/elementwise/float_math.cl"
#undef FUNCTION
#undef FV
#undef IV
#undef FN
#undef AS_FV
#undef AS_IV
#undef FLOATS_OF
#undef FMA
#undef SQUARE_REST
#undef POWER_OF_TWO
#undef MAGNITUDE
#undef SIGN_OF
#undef AT_MOST
#undef AT_LEAST
#undef REDUCED
#undef EXPONENT

}  // namespace floats

#define NETCL_FUNCTION(name)                                                         \
  [[gnu::always_inline]] inline float name(float x) { return floats::name##_of(x); } \
  inline double name(double x) { return std::name(x); }
NETCL_FUNCTION(erf)
NETCL_FUNCTION(erfc)
NETCL_FUNCTION(exp)
NETCL_FUNCTION(expm1)
NETCL_FUNCTION(log1p)
NETCL_FUNCTION(tanh)
#undef NETCL_FUNCTION

template <class V>
V rsqrt(V x) {
  return V(1) / std::sqrt(x);
}
template <class V>
V absolute(V x) {
  if constexpr (std::is_floating_point_v<V>)
    return std::fabs(x);
  else
    return x < V(0) ? -x : x;
}
template <class V>
V larger(V a, V b) {
  return (a != a) | (a > b) ? a : b;
}
template <class V>
V smaller(V a, V b) {
  return (a != a) | (a < b) ? a : b;
}

// What an expression is computed in.
template <class V>
using Computed = std::conditional_t<std::is_integral_v<V>, Wrapping<V>, V>;

template <class V, class F>
void block_loop(std::int64_t n, const V* const* in, V p, V q, V* out) {
  using C = Computed<V>;
  const F f{};
  const V *a = in[kA], *b = in[kB], *c = in[kC], *y = in[kY], *dy = in[kDy];
  // `out` is none of the inputs; without being told the compiler would not vectorise this at -O2.
#ifdef _OPENMP  // the library is compiled with it; who includes this header need not be
#pragma omp simd
#endif
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = V(f(C(a[i]), C(b[i]), C(c[i]), C(y[i]), C(dy[i]), C(p), C(q)));
}

template <class F>
ElementCode floating_code(const char* text, F) {
  return {text, &block_loop<float, F>, &block_loop<double, F>, nullptr, nullptr};
}
template <class F>
ElementCode number_code(const char* text, F) {
  return {text, &block_loop<float, F>, &block_loop<double, F>, &block_loop<std::int32_t, F>,
          &block_loop<std::int64_t, F>};
}

}  // namespace element_math
}  // namespace netcl
