// Element types. float16 and bfloat16 are storage types: arithmetic on them is done in float.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "netcl/error.h"

namespace netcl {

enum class DType : std::uint8_t {
  float16,
  bfloat16,
  float32,
  float64,
  int8,
  uint8,
  int32,
  int64,
  boolean,
};

inline constexpr DType kAllDTypes[] = {DType::float16, DType::bfloat16, DType::float32,
                                       DType::float64, DType::int8,     DType::uint8,
                                       DType::int32,   DType::int64,    DType::boolean};

std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);  // "float32", ..., "bool"
bool is_floating(DType dtype);
// Accepts the names above and the usual aliases ("float", "half", "double", "int", "long", ...).
DType parse_dtype(std::string_view name);
// The OpenCL C type that holds one element: "half", "ushort" (bfloat16), "float", "uchar" (bool).
std::string_view opencl_type(DType dtype);

// IEEE binary16 conversions, round to nearest even, NaN kept.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
std::uint16_t double_to_half(double value);  // one rounding, not two
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);
std::uint16_t double_to_bfloat16(double value);

struct float16_t {
  std::uint16_t bits = 0;
  float16_t() = default;
  explicit float16_t(float value) : bits(float_to_half(value)) {}
  explicit float16_t(double value) : bits(double_to_half(value)) {}
  explicit operator float() const { return half_to_float(bits); }
  explicit operator double() const { return half_to_float(bits); }
  bool operator==(const float16_t& other) const = default;  // of the bits
};

struct bfloat16_t {
  std::uint16_t bits = 0;
  bfloat16_t() = default;
  explicit bfloat16_t(float value) : bits(float_to_bfloat16(value)) {}
  explicit bfloat16_t(double value) : bits(double_to_bfloat16(value)) {}
  explicit operator float() const { return bfloat16_to_float(bits); }
  explicit operator double() const { return bfloat16_to_float(bits); }
  bool operator==(const bfloat16_t& other) const = default;  // of the bits
};

template <class T>
struct dtype_of_type;
template <>
struct dtype_of_type<float16_t> : std::integral_constant<DType, DType::float16> {};
template <>
struct dtype_of_type<bfloat16_t> : std::integral_constant<DType, DType::bfloat16> {};
template <>
struct dtype_of_type<float> : std::integral_constant<DType, DType::float32> {};
template <>
struct dtype_of_type<double> : std::integral_constant<DType, DType::float64> {};
template <>
struct dtype_of_type<std::int8_t> : std::integral_constant<DType, DType::int8> {};
template <>
struct dtype_of_type<std::uint8_t> : std::integral_constant<DType, DType::uint8> {};
template <>
struct dtype_of_type<std::int32_t> : std::integral_constant<DType, DType::int32> {};
template <>
struct dtype_of_type<std::int64_t> : std::integral_constant<DType, DType::int64> {};
template <>
struct dtype_of_type<bool> : std::integral_constant<DType, DType::boolean> {};

template <class T>
inline constexpr DType dtype_v = dtype_of_type<std::remove_cv_t<T>>::value;

// Calls `f(T{})` with the C++ type that stores `dtype`.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float16:
      return f(float16_t{});
    case DType::bfloat16:
      return f(bfloat16_t{});
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::int8:
      return f(std::int8_t{});
    case DType::uint8:
      return f(std::uint8_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::boolean:
      return f(bool{});
  }
  throw DtypeError("[dtype] the value must name a dtype: " +
                   std::to_string(static_cast<int>(dtype)));
}

}  // namespace netcl
