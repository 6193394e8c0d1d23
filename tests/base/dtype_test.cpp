#include "netcl/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/convert.h"

namespace netcl {
namespace {

TEST(DType, NamesAndSizesAgreeWithTheStoredTypes) {
  for (const auto dtype : kAllDTypes) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
    visit_dtype(dtype, [&]<class T>(T) {
      EXPECT_EQ(dtype_v<T>, dtype);
      EXPECT_EQ(sizeof(T), size_of(dtype));
    });
  }
  EXPECT_EQ(parse_dtype("half"), DType::float16);
  EXPECT_EQ(parse_dtype("double"), DType::float64);
}

TEST(DType, UnknownNameListsTheKnownOnes) {
  try {
    parse_dtype("complex64");
    FAIL();
  } catch (const DtypeError& error) {
    EXPECT_NE(std::string(error.what()).find("complex64"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("bfloat16"), std::string::npos);
  }
}

TEST(Half, EveryBitPatternSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
      continue;
    }
    ASSERT_EQ(float_to_half(value), half) << bits;
    ASSERT_EQ(double_to_half(value), half) << bits;
  }
}

// The nearest half by search over all of them: independent of how the conversion works.
std::uint16_t nearest_half(double value) {
  std::uint16_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (std::uint16_t bits = 0; bits < 0x7c00; ++bits) {
    const double distance = std::fabs(static_cast<double>(half_to_float(bits)) - value);
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) {
      best = bits;
      best_distance = distance;
    }
  }
  return value >= 65520.0 ? std::uint16_t{0x7c00} : best;
}

TEST(Half, RoundsToNearestEven) {
  const double values[] = {1.0 + 0x1p-11,
                           1.0 + 3 * 0x1p-11,
                           1.0 + 0x1p-11 + 0x1p-40,
                           0x1p-24,
                           0x1p-25,
                           0x1p-25 + 0x1p-50,
                           65504.0,
                           65519.99,
                           65520.0,
                           6.1e-5,
                           0.333333333333,
                           1e-7,
                           1023.5,
                           2049.0,
                           2051.0};
  for (const double value : values) {
    EXPECT_EQ(double_to_half(value), nearest_half(value)) << value;
    EXPECT_EQ(double_to_half(-value), nearest_half(value) | 0x8000) << value;
    const auto single = static_cast<float>(value);
    EXPECT_EQ(float_to_half(single), nearest_half(single)) << value;
  }
}

TEST(Bfloat16, RoundsOnceFromDouble) {
  // Just above a tie: through float the excess would be lost and the tie would go to even.
  const double above_tie = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(double_to_bfloat16(above_tie), 0x3f81);
  EXPECT_EQ(float_to_bfloat16(static_cast<float>(above_tie)), 0x3f80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
  EXPECT_TRUE(std::isinf(bfloat16_to_float(float_to_bfloat16(3.4e38f))));
}

TEST(Convert, IntegersSaturateAndNanIsZero) {
  EXPECT_EQ((convert_element<std::int8_t>(300.0f)), 127);
  EXPECT_EQ((convert_element<std::int8_t>(-300)), -128);
  EXPECT_EQ((convert_element<std::uint8_t>(-1.5f)), 0);
  EXPECT_EQ((convert_element<std::int32_t>(NAN)), 0);
  EXPECT_EQ((convert_element<std::int64_t>(1e300)), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((convert_element<std::int32_t>(-1.9)), -1);
  EXPECT_EQ((convert_element<bool>(NAN)), true);
  EXPECT_EQ((convert_element<bool>(-0.0f)), false);
  EXPECT_EQ((convert_element<float>(true)), 1.0f);
}

}  // namespace
}  // namespace netcl
