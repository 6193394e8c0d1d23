// What the layers share.
#pragma once

#include <cmath>

#include "base/check.h"
#include "netcl/nn.h"

namespace netcl::nn {

inline Tensor new_tensor(const Shape& shape) { return Tensor::from_shape(shape); }

inline std::vector<std::int64_t> list_of(const ops::Pair& pair) { return {pair[0], pair[1]}; }

inline void check_positive(const char* layer, const char* what, std::int64_t value) {
  check<ArgumentError>(value > 0, "[{}] {} must be positive: {}", layer, what, value);
}

// The usual start of a weight with a bias: uniform within 1 / sqrt(fan in).
inline void init_weight_and_bias(const Tensor& weight, const Tensor& bias, double fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  init::uniform(weight, -bound, bound);
  if (bias) init::uniform(bias, -bound, bound);
}

}  // namespace netcl::nn
