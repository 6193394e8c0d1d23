// dropout on all devices at once, and its limits.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

TEST(Dropout, gives_the_same_bits_on_every_device) {
  const auto cpu = manager().default_device("cpu").queue;
  for (const auto dtype : {DType::float32, DType::float64, DType::float16}) {
    const auto x = Tensor::random(cpu, {1003}, 4, Distribution::normal, dtype);
    const auto expected = ops::dropout(x, 0.3, 77).to_vector<double>();
    test::on_every_device([&](const Queue& queue) {
      if (dtype == DType::float64 && !queue.is_cpu() && !device_profile(queue).has_fp64) return;
      EXPECT_EQ(ops::dropout(x.to(queue), 0.3, 77).to_vector<double>(), expected);
    });
  }
}

TEST(Dropout, drops_the_same_elements_of_every_dtype) {
  test::on_every_device([](const Queue& queue) {
    const auto single = ops::dropout(Tensor::full(queue, {999}, 1), 0.5, 1).to_vector<float>();
    const auto half = ops::dropout(Tensor::full(queue, {999}, 1, DType::float16), 0.5, 1);
    EXPECT_EQ(half.to_vector<float>(), single);
  });
}

TEST(Dropout, drops_about_as_many_as_asked) {
  test::on_every_device([](const Queue& queue) {
    const std::int64_t n = 100000;
    for (const double p : {0.1, 0.5, 0.8}) {
      const auto y = ops::dropout(Tensor::full(queue, {n}, 1), p, 9).to_vector<float>();
      const auto zeros = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
      const double deviation = std::sqrt(p * (1 - p) * static_cast<double>(n));
      EXPECT_NEAR(zeros, p * static_cast<double>(n), 5 * deviation);
    }
  });
}

TEST(Dropout, has_limits) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {100}, INFINITY);
    EXPECT_EQ(ops::dropout(x, 1, 3).to_vector<float>(), std::vector<float>(100, 0.0f));
    EXPECT_EQ(ops::dropout(x, 0, 3).to_vector<float>(), x.to_vector<float>());
    EXPECT_THROW(ops::dropout(x, -0.1, 3), ArgumentError);
    EXPECT_THROW(ops::dropout(x, 1.1, 3), ArgumentError);
    EXPECT_THROW(ops::dropout(x, NAN, 3), ArgumentError);
    EXPECT_THROW(ops::dropout(x.astype(DType::int32), 0.5, 3), DtypeError);
  });
}

}  // namespace
}  // namespace netcl
