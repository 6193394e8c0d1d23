// Loops over the elements of a row for the CPU backend, compiled for several instruction sets; the
// best that the processor has is taken. In float and double.
#pragma once

#include <cstdint>

namespace netcl::row_math {

template <class V>
struct Functions {
  V (*largest)(const V* x, std::int64_t n);  // NaN where one is NaN, 0 of nothing
  V (*smallest)(const V* x, std::int64_t n);
  V (*sum)(const V* x, std::int64_t n);
  V (*dot)(const V* x, const V* y, std::int64_t n);
  V (*squares)(const V* x, std::int64_t n, V mean);             // of the distances from the mean
  V (*moment)(const V* x, std::int64_t n, V mean, const V* g);  // of these times g
  V (*sum_exp)(const V* x, std::int64_t n, V top);              // of exp(x - top)
  V (*exponentials)(V* x, std::int64_t n, V top);               // x = exp(x - top); their sum
  void (*move)(V* x, std::int64_t n, V shift, V factor);        // x = (x + shift) factor
  void (*multiply)(V* x, const V* y, std::int64_t n);           // x = x y
  void (*add)(V* x, const V* y, std::int64_t n);                // x = x + y
  void (*raise)(V* x, const V* y, std::int64_t n);              // x = max(x, y); NaN may get lost
  // Gradients from y or x in `x`, which become dx.
  void (*softmax_gradient)(V* x, const V* dy, std::int64_t n, V sum);
  void (*log_softmax_gradient)(V* x, const V* dy, std::int64_t n, V sum);
  void (*norm_gradient)(V* x, const V* g, std::int64_t n, V mean, V inverse, V share, V slope);
  // dscale += dy (x - mean) inverse, dshift += dy.
  void (*add_parameters)(V* dscale, V* dshift, const V* x, const V* dy, std::int64_t n, V mean,
                         V inverse);
};

// Of this processor. Their results are the same on all.
template <class V>
const Functions<V>& functions();

}  // namespace netcl::row_math
