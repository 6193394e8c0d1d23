// Comparing outputs of candidates: a local size that makes a kernel faster and wrong must lose.
#include "tune/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/source_scan.h"

namespace netcl::tune {
namespace {

// Far above rounding, far below what a wrong work-group size does.
double tolerance_of(DType type) {
  switch (type) {
    case DType::float64:
      return 1e-10;
    case DType::float32:
      return 1e-4;
    default:
      return 2e-2;
  }
}

template <class T>
double value_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

// The usual size of an element: what a sum that happens to cancel is compared with.
template <class T>
double mean_magnitude(std::span<const std::byte> bytes, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (const double value = std::abs(value_at<T>(bytes, i)); std::isfinite(value)) sum += value;
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

bool is_close(double a, double b, double tolerance, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * (std::max(std::abs(a), std::abs(b)) + scale);
}

template <class T>
bool all_close(std::span<const std::byte> expected, std::span<const std::byte> actual,
               double tolerance) {
  const auto count = expected.size() / sizeof(T);
  const double scale = mean_magnitude<T>(expected, count);
  for (std::size_t i = 0; i < count; ++i)
    if (!is_close(value_at<T>(expected, i), value_at<T>(actual, i), tolerance, scale)) return false;
  return true;
}

struct TypeName {
  std::string_view name;
  DType type;
};
// Unsigned integers have no dtype of their own above 8 bits; their bytes are what counts here.
constexpr TypeName kTypes[] = {{"half", DType::float16},   {"float", DType::float32},
                               {"double", DType::float64}, {"char", DType::int8},
                               {"uchar", DType::uint8},    {"bool", DType::boolean},
                               {"int", DType::int32},      {"uint", DType::int32},
                               {"long", DType::int64},     {"ulong", DType::int64}};

}  // namespace

std::optional<DType> element_type(std::string_view type) {
  const auto scalar = scalar_of(type);
  for (const auto& entry : kTypes)
    if (entry.name == scalar) return entry.type;
  return std::nullopt;
}

bool same_result(std::span<const std::byte> expected, std::span<const std::byte> actual,
                 std::optional<DType> type) {
  if (expected.size() != actual.size()) return false;
  if (std::memcmp(expected.data(), actual.data(), expected.size()) == 0) return true;
  if (!type || !is_floating(*type)) return false;
  const double tolerance = tolerance_of(*type);
  switch (*type) {
    case DType::float64:
      return all_close<double>(expected, actual, tolerance);
    case DType::float32:
      return all_close<float>(expected, actual, tolerance);
    case DType::float16:
      return all_close<float16_t>(expected, actual, tolerance);
    default:
      return all_close<bfloat16_t>(expected, actual, tolerance);
  }
}

}  // namespace netcl::tune
