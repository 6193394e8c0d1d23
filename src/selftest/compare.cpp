#include "selftest/compare.h"

#include <cmath>
#include <limits>

#include "base/format.h"
#include "ops/coordinates.h"
#include "selftest/data.h"

namespace netcl::selftest_detail {
namespace {

// Devices may flush subnormal numbers to zero.
double smallest(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-14;
    case DType::float64:
      return std::numeric_limits<double>::min();
    default:
      return is_floating(dtype) ? std::numeric_limits<float>::min() : 0.0;
  }
}

// The sign of a NaN means nothing.
std::string text_of(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

// How much an element is off, in units of what is allowed; above 1 is a failure.
double excess(double actual, double exact, DType dtype, const Tolerance& tolerance) {
  const double expected = rounded(exact, dtype);
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) == std::isnan(actual) ? 0 : INFINITY;
  if (actual == expected) return 0;
  if (!is_floating(dtype)) return INFINITY;  // integers are exact
  const double allowed =
      tolerance.ulps * epsilon(dtype) * std::fabs(exact) +
      tolerance.terms * epsilon(dtype == DType::float64 ? dtype : DType::float32) + smallest(dtype);
  if (std::isinf(actual) || std::isinf(expected)) {
    // On the edge of the range rounding decides between the largest number and infinity.
    const double largest = dtype == DType::float16   ? 65504.0
                           : dtype == DType::float64 ? std::numeric_limits<double>::max()
                                                     : std::numeric_limits<float>::max();
    const bool edge = std::isfinite(exact) && std::fabs(exact) > largest * (1 - 0x1p-8) &&
                      std::signbit(actual) == std::signbit(expected) && tolerance.ulps > 0;
    return edge && std::fabs(exact) < largest * (1 + 0x1p-8) ? 0 : INFINITY;
  }
  const double error = std::fabs(actual - exact);
  const double half_ulp = std::fabs(expected - exact);
  return allowed + half_ulp == 0 ? INFINITY : error / (allowed + half_ulp);
}

}  // namespace

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float32:
      return std::numeric_limits<float>::epsilon();
    case DType::float64:
      return std::numeric_limits<double>::epsilon();
    default:
      return 0;
  }
}

std::string compare(const HostArray& actual, const RefArray& expected, const Tolerance& tolerance) {
  double worst = 0;
  std::int64_t where = -1, count = 0;
  for (std::int64_t i = 0; i < actual.numel(); ++i) {
    const double off = excess(actual.at(i), expected.values[static_cast<std::size_t>(i)],
                              expected.dtype, tolerance);
    if (off > 1) ++count;
    if (off > worst) worst = off, where = i;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} of {} elements are wrong; at ({}): {} instead of {}, {:.3g} times what is "
      "allowed ({:g} ulps + {:g} terms)",
      count, actual.numel(), join(coordinates_of(actual.shape(), where), ", "),
      text_of(actual.at(where)), text_of(expected.values[static_cast<std::size_t>(where)]), worst,
      tolerance.ulps, tolerance.terms);
}

}  // namespace netcl::selftest_detail
