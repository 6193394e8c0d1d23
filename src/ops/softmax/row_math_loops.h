// The loops of row_math.h, for a file that is compiled for one instruction set. Everything is local
// to that file, and nothing of the standard library that could be shared with others is called.
#include <cmath>

#include "ops/softmax/row_math.h"

namespace netcl::row_math {
namespace {

constexpr std::int64_t kLanes = 32;  // accumulators: fast, and errors grow slowly

double exp_of(double x) { return std::exp(x); }

// To one ulp; NaN stays, what is below the normal numbers becomes 0. x = k log 2 + r, and a
// polynomial for exp(r): exp_vector of vectors.cl.
float exp_of(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -87.3f ? -87.4f : x;
  // Adding 3 * 2^22 leaves no room for fractions: the lowest bits are k.
  const float shifted = x * 1.44269504f + 12582912.0f, k = shifted - 12582912.0f;
  const float r = k * -1.42860677e-6f + (k * -0.693145751953125f + x);
  float p = 0.0013814318f * r + 0.008368852f;
  p = p * r + 0.0416684f;
  p = p * r + 0.1666652f;
  p = p * r + 0.49999994f;
  p = (p * (r * r) + r) + 1.0f;
  // 2^(k - 1), then 2: the largest k has no float of its own.
  const auto exponent = __builtin_bit_cast(std::int32_t, shifted) - (0x4b400000 - 126);
  return p * __builtin_bit_cast(float, exponent << 23) * 2.0f;
}

// The sum of f(i), by lanes.
template <class V, class F>
V sum_of(std::int64_t n, F f) {
  V lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += f(i + l);
  for (std::int64_t l = 0; i + l < n; ++l) lanes[l] += f(i + l);
  for (std::int64_t part = kLanes / 2; part > 0; part /= 2)
    for (std::int64_t l = 0; l < part; ++l) lanes[l] += lanes[l + part];
  return lanes[0];
}

template <class V, bool most>
V extreme_of(V a, V b) {
  return (a != a) | (most ? a > b : a < b) ? a : b;
}

template <class V, bool most>
V extreme(const V* x, std::int64_t n) {
  if (n == 0) return 0;
  V lanes[kLanes];
  for (auto& lane : lanes) lane = x[0];
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = extreme_of<V, most>(lanes[l], x[i + l]);
  for (; i < n; ++i) lanes[0] = extreme_of<V, most>(lanes[0], x[i]);
  for (const V lane : lanes) lanes[0] = extreme_of<V, most>(lanes[0], lane);
  return lanes[0];
}

template <class V>
V largest(const V* x, std::int64_t n) {
  return extreme<V, true>(x, n);
}
template <class V>
V smallest(const V* x, std::int64_t n) {
  return extreme<V, false>(x, n);
}

template <class V>
V exponentials(V* x, std::int64_t n, V top) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = exp_of(x[i] - top);
  return sum_of<V>(n, [=](std::int64_t i) { return x[i]; });
}

template <class V>
V sum(const V* x, std::int64_t n) {
  return sum_of<V>(n, [=](std::int64_t i) { return x[i]; });
}

template <class V>
V dot(const V* x, const V* y, std::int64_t n) {
  return sum_of<V>(n, [=](std::int64_t i) { return x[i] * y[i]; });
}

template <class V>
V squares(const V* x, std::int64_t n, V mean) {
  return sum_of<V>(n, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

template <class V>
V moment(const V* x, std::int64_t n, V mean, const V* g) {
  return sum_of<V>(n, [=](std::int64_t i) { return g[i] * (x[i] - mean); });
}

template <class V>
V sum_exp(const V* x, std::int64_t n, V top) {
  return sum_of<V>(n, [=](std::int64_t i) { return exp_of(x[i] - top); });
}

template <class V>
void move(V* x, std::int64_t n, V shift, V factor) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = (x[i] + shift) * factor;
}

template <class V>
void multiply(V* x, const V* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= y[i];
}

template <class V>
void add(V* x, const V* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

template <class V>
void raise(V* x, const V* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] > y[i] ? x[i] : y[i];
}

template <class V>
void softmax_gradient(V* x, const V* dy, std::int64_t n, V sum) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= dy[i] - sum;
}

template <class V>
void log_softmax_gradient(V* x, const V* dy, std::int64_t n, V sum) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = dy[i] - exp_of(x[i]) * sum;
}

template <class V>
void norm_gradient(V* x, const V* g, std::int64_t n, V mean, V inverse, V share, V slope) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = inverse * (g[i] - share - (x[i] - mean) * inverse * slope);
}

template <class V>
void add_parameters(V* dscale, V* dshift, const V* x, const V* dy, std::int64_t n, V mean,
                    V inverse) {
  for (std::int64_t i = 0; i < n; ++i) {
    dscale[i] += dy[i] * (x[i] - mean) * inverse;
    dshift[i] += dy[i];
  }
}

template <class V>
constexpr Functions<V> kFunctions = {largest<V>,
                                     smallest<V>,
                                     sum<V>,
                                     dot<V>,
                                     squares<V>,
                                     moment<V>,
                                     sum_exp<V>,
                                     exponentials<V>,
                                     move<V>,
                                     multiply<V>,
                                     add<V>,
                                     raise<V>,
                                     softmax_gradient<V>,
                                     log_softmax_gradient<V>,
                                     norm_gradient<V>,
                                     add_parameters<V>};

}  // namespace
}  // namespace netcl::row_math
