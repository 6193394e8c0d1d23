// Names and sizes of the dtypes, and the exact conversions of the two 16-bit formats.
#include "netcl/dtype.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace netcl {
namespace {

struct DTypeInfo {
  DType dtype;
  std::size_t size;
  std::string_view name;
  std::string_view opencl;
  bool floating;
};

constexpr std::array<DTypeInfo, 9> kInfo = {{
    {DType::float16, 2, "float16", "half", true},
    {DType::bfloat16, 2, "bfloat16", "ushort", true},
    {DType::float32, 4, "float32", "float", true},
    {DType::float64, 8, "float64", "double", true},
    {DType::int8, 1, "int8", "char", false},
    {DType::uint8, 1, "uint8", "uchar", false},
    {DType::int32, 4, "int32", "int", false},
    {DType::int64, 8, "int64", "long", false},
    {DType::boolean, 1, "bool", "uchar", false},
}};

const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  check<DtypeError>(index < kInfo.size(), "[dtype] the value must name a dtype: {}", index);
  return kInfo[index];
}

struct Alias {
  std::string_view alias;
  DType dtype;
};

constexpr Alias kAliases[] = {
    {"float", DType::float32}, {"half", DType::float16},  {"double", DType::float64},
    {"bf16", DType::bfloat16}, {"f16", DType::float16},   {"f32", DType::float32},
    {"f64", DType::float64},   {"char", DType::int8},     {"uchar", DType::uint8},
    {"int", DType::int32},     {"long", DType::int64},    {"boolean", DType::boolean},
    {"i8", DType::int8},       {"u8", DType::uint8},      {"i32", DType::int32},
    {"i64", DType::int64},     {"bool_", DType::boolean},
};

// Rounds a finite or infinite double to a binary format with `kExp` exponent and `kMant` mantissa
// bits in one step, to nearest even. Going through float first would round twice.
template <int kExp, int kMant>
std::uint16_t narrow(double value) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr std::uint16_t kInf = static_cast<std::uint16_t>(((1 << kExp) - 1) << kMant);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | kInf | (1 << (kMant - 1)));
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | kInf);
  if (magnitude == 0.0) return sign;
  // Count in units of the spacing of the target format at this magnitude; nearbyint then rounds
  // to even. Subnormals share the spacing of the smallest normal.
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - kBias) exponent = 1 - kBias;
  const double units = std::nearbyint(std::ldexp(magnitude, kMant - exponent));
  // `units` may have reached 2^(kMant+1), or a subnormal may have become normal: because the
  // encoding is monotonic, adding it to the exponent field carries correctly.
  const auto encoded =
      static_cast<std::int64_t>(units) + (static_cast<std::int64_t>(exponent + kBias - 1) << kMant);
  if (encoded >= kInf) return static_cast<std::uint16_t>(sign | kInf);
  return static_cast<std::uint16_t>(sign | encoded);
}

}  // namespace

std::size_t size_of(DType dtype) { return info(dtype).size; }
std::string_view name_of(DType dtype) { return info(dtype).name; }
bool is_floating(DType dtype) { return info(dtype).floating; }
std::string_view opencl_type(DType dtype) { return info(dtype).opencl; }

DType parse_dtype(std::string_view name) {
  for (const auto& entry : kInfo)
    if (entry.name == name) return entry.dtype;
  for (const auto& entry : kAliases)
    if (entry.alias == name) return entry.dtype;
  std::string known;
  for (const auto& entry : kInfo) known += (known.empty() ? "" : ", ") + std::string(entry.name);
  fail<DtypeError>("[dtype] the name must be one of {}: '{}'", known, name);
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) & 0xffu;
  // The common case without the general routine: normal in both formats.
  if (exponent > 112 && exponent < 142) {
    const std::uint32_t rounded = bits + 0xfffu + ((bits >> 13) & 1u);
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) |
                                      (((rounded & 0x7fffffffu) >> 13) - (112u << 10)));
  }
  return narrow<5, 10>(value);
}

std::uint16_t double_to_half(double value) { return narrow<5, 10>(value); }

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

std::uint16_t double_to_bfloat16(double value) { return narrow<8, 7>(value); }

}  // namespace netcl
