#include "tensor/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

constexpr DType kFloating[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};

// The published answers of Philox 4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr auto kOnes = 0xffffffffu;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, TheSameBitsOnEveryDevice) {
  const auto cpu = manager().default_device("cpu").queue;
  test::on_every_device([&](const Queue& queue) {
    for (const auto dtype : kFloating)
      for (const auto distribution : {Distribution::uniform, Distribution::normal})
        for (const std::int64_t n : {0, 1, 2, 3, 5, 1000, 100'003}) {
          const auto seed = 0x123456789abcdefull + static_cast<std::uint64_t>(n);
          const auto expected = Tensor::random(cpu, {n}, seed, distribution, dtype).to_host();
          const auto got = Tensor::random(queue, {n}, seed, distribution, dtype).to_host();
          ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.nbytes()), 0)
              << name_of(dtype) << " " << n;
        }
  });
}

TEST(Random, UniformStaysBelowOne) {
  for (const auto dtype : kFloating) {
    const auto values = Tensor::random(manager().default_device("cpu").queue, {200'000}, 3,
                                       Distribution::uniform, dtype)
                            .to_vector<double>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, 0.0) << name_of(dtype);
    EXPECT_LT(*high, 1.0) << name_of(dtype);
    double sum = 0;
    for (const double value : values) sum += value;
    EXPECT_NEAR(sum / 200'000, 0.5, 0.005) << name_of(dtype);
  }
}

// The largest distance between the sample's distribution and the normal one (Kolmogorov-Smirnov).
double distance_to_normal(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
    const double got = (static_cast<double>(i) + 0.5) / static_cast<double>(values.size());
    distance = std::max(distance, std::fabs(expected - got));
  }
  return distance;
}

TEST(Random, NormalIsNormal) {
  constexpr std::int64_t kCount = 1'000'000;
  for (const auto dtype : {DType::float32, DType::float64}) {
    const auto values = Tensor::random(manager().default_device("cpu").queue, {kCount}, 11,
                                       Distribution::normal, dtype)
                            .to_vector<double>();
    // 1.95 / sqrt(n) is passed by 999 of 1000 truly normal samples; the seed is fixed.
    EXPECT_LT(distance_to_normal(values), 1.95 / std::sqrt(static_cast<double>(kCount)));
    double square = 0, fourth = 0;
    for (const double value : values) {
      square += value * value;
      fourth += value * value * value * value;
    }
    EXPECT_NEAR(square / kCount, 1.0, 0.01);
    EXPECT_NEAR(fourth / kCount, 3.0, 0.1);
  }
}

TEST(Random, SeedsDifferAndIntegersAreRefused) {
  test::on_every_device([](const Queue& queue) {
    const auto a = Tensor::random(queue, {100}, 1).to_vector<float>();
    EXPECT_EQ(a, Tensor::random(queue, {100}, 1).to_vector<float>());
    EXPECT_NE(a, Tensor::random(queue, {100}, 2).to_vector<float>());
    EXPECT_NE(a, Tensor::random(queue, {100}, 1ull << 32 | 1).to_vector<float>());
    EXPECT_THROW(Tensor::random(queue, {2}, 1, Distribution::uniform, DType::int32), DtypeError);
  });
}

}  // namespace
}  // namespace netcl
