// What converting one element means, the same on every backend: integers saturate, NaN becomes 0,
// fractions are cut, bool is "not zero", and floating values are rounded once, to nearest even.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "netcl/dtype.h"

namespace netcl {

// The type in which arithmetic on T is done on the host.
template <class T>
using arithmetic_t =
    std::conditional_t<std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>, float, T>;

template <class To, class From>
To to_integer(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(value)) return To{0};
    // 2^digits and its negative are exact in float and double; the largest integer is not.
    const From upper = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value >= upper) return std::numeric_limits<To>::max();
    const From lower = std::is_signed_v<To> ? -upper : From{0};
    if (value <= lower) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    if (std::cmp_greater(value, std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  }
}

template <class To, class From>
To convert_element(From stored) {
  if constexpr (std::is_same_v<To, From>) {
    return stored;
  } else {
    const auto value = static_cast<arithmetic_t<From>>(stored);
    using Value = std::remove_const_t<decltype(value)>;
    if constexpr (std::is_same_v<To, bool>) {
      return value != Value{0};
    } else if constexpr (std::is_same_v<To, float16_t> || std::is_same_v<To, bfloat16_t>) {
      if constexpr (std::is_same_v<Value, double>)
        return To(value);
      else
        return To(static_cast<float>(value));
    } else if constexpr (std::is_floating_point_v<To>) {
      return static_cast<To>(value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      return value ? To{1} : To{0};
    } else {
      return to_integer<To>(value);
    }
  }
}

}  // namespace netcl
