#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "netcl/netcl.h"
#include "support/devices.h"
#include "tensor/host_copy.h"

namespace netcl {
namespace {

// Values at every edge that a conversion can have.
std::vector<double> edge_values() {
  std::vector<double> values = {0.0,
                                -0.0,
                                0.5,
                                -0.5,
                                1.0,
                                -1.0,
                                1.9,
                                -1.9,
                                127.0,
                                128.0,
                                -128.0,
                                -129.0,
                                255.0,
                                256.0,
                                65504.0,
                                65520.0,
                                70000.0,
                                1e-8,
                                6e-8,
                                0x1p-24,
                                0x1p-25,
                                1e10,
                                -1e10,
                                2147483647.0,
                                2147483648.0,
                                -2147483648.0,
                                -2147483649.0,
                                9.2e18,
                                9.3e18,
                                -9.3e18,
                                1e300,
                                -1e300,
                                3.4e38,
                                1.0 + 0x1p-8,
                                1.0 + 0x1p-8 + 0x1p-40,
                                1.0 + 0x1p-11,
                                1.0 + 0x1p-11 + 0x1p-40,
                                16777217.0,
                                0.1,
                                1.0 / 3.0};
  values.push_back(std::numeric_limits<double>::infinity());
  values.push_back(-std::numeric_limits<double>::infinity());
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  for (int i = 0; i < 200; ++i) values.push_back(std::sin(i) * std::pow(10.0, i % 12));
  return values;
}

HostArray edge_array(DType dtype) {
  const auto values = edge_values();
  HostArray array(Shape{static_cast<std::int64_t>(values.size())}, dtype);
  host_copy({{array.numel(), 1, 1}}, array.data(), dtype, values.data(), DType::float64);
  return array;
}

bool is_nan(const HostArray& array, std::int64_t i) { return std::isnan(array.at(i)); }

// NaN may come with any payload; everything else must have the same bits.
void expect_equal(const HostArray& got, const HostArray& expected, const HostArray& source) {
  const auto size = size_of(got.dtype());
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    if (is_nan(got, i) && is_nan(expected, i)) continue;
    const auto at = static_cast<std::size_t>(i) * size;
    ASSERT_EQ(std::memcmp(static_cast<const char*>(got.data()) + at,
                          static_cast<const char*>(expected.data()) + at, size),
              0)
        << name_of(source.dtype()) << " " << source.at(i) << " -> " << name_of(got.dtype()) << ": "
        << got.at(i) << " instead of " << expected.at(i);
  }
}

// Compiling is what takes the time here: devices after the first of a platform, which share its
// compiler, get a quarter of the pairs.
bool is_tested(const Queue& queue, DType from, DType to) {
  const auto devices = manager().discover();
  const bool first = queue.is_cpu() || devices.empty() || queue.device() == devices[0].device ||
                     device_profile(queue).platform_name != devices[0].platform_name;
  return first || (static_cast<int>(from) + 2 * static_cast<int>(to)) % 4 == 0;
}

TEST(Cast, EveryPairOfDtypesMatchesTheHost) {
  test::on_every_device([](const Queue& queue) {
    for (const auto from : kAllDTypes)
      for (const auto to : kAllDTypes) {
        if (!is_tested(queue, from, to)) continue;
        const auto source = edge_array(from);
        HostArray expected(source.shape(), to);
        host_copy({{source.numel(), 1, 1}}, expected.data(), to, source.data(), from);
        expect_equal(Tensor::from_host(queue, source).astype(to).to_host(), expected, source);
      }
  });
}

TEST(Cast, ViewsAndOddSizes) {
  test::on_every_device([](const Queue& queue) {
    const auto base = Tensor::arange(queue, -30, 31, 1, DType::float32);
    EXPECT_EQ(base.slice(0, Tensor::kBegin, Tensor::kEnd, -7).astype(DType::int8).to_vector<int>(),
              (std::vector<int>{30, 23, 16, 9, 2, -5, -12, -19, -26}));
    EXPECT_EQ(base.narrow(0, 0, 60)
                  .reshape({3, 4, 5})
                  .permute({2, 0, 1})
                  .astype(DType::int64)
                  .select(0, 1)
                  .to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{-29, -24, -19, -14, -9, -4, 1, 6, 11, 16, 21, 26}));
    EXPECT_EQ(Tensor::from_shape(queue, {0, 3}).astype(DType::float16).numel(), 0);
    EXPECT_TRUE(base.astype(DType::float32).shares_storage(base));
  });
}

// More than caches keep, which CPUs write past them where the target lies at whole vectors.
TEST(Cast, LargeOnesWhereverTheyLie) {
  constexpr std::int64_t kCount = 6'000'001;
  const auto made = [](const Queue& queue, std::int64_t offset, DType dtype) {
    const auto x = Tensor::random(queue, {kCount}, 5, Distribution::normal);
    const auto y = Tensor::from_shape(queue, {kCount}, dtype);
    y.narrow(0, offset, kCount - offset).copy_from(x.narrow(0, 0, kCount - offset));
    return y.narrow(0, offset, kCount - offset).to_host();
  };
  const auto cpu = manager().default_device("cpu").queue;
  test::on_every_device([&](const Queue& queue) {
    for (const std::int64_t offset : {0, 3}) {
      const auto expected = made(cpu, offset, DType::float16);
      const auto got = made(queue, offset, DType::float16);
      ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.nbytes()), 0) << offset;
    }
  });
}

}  // namespace
}  // namespace netcl
