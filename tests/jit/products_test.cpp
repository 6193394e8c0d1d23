// Products that take bias and activation in from the ops behind them keep their own residual.
#include <gtest/gtest.h>

#include "netcl/jit.h"
#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

void expect_near(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  const auto a = actual.to_vector<double>(), e = expected.to_vector<double>();
  for (std::size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(a[i], e[i], 1e-5) << i;
}

TEST(FusedProducts, LinearKeepsItsResidual) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {5, 7}, 1), w = Tensor::random(queue, {6, 7}, 2),
               b = Tensor::random(queue, {6}, 3), r = Tensor::random(queue, {5, 6}, 4) - 3.0;
    const auto f = [](const Tensor& x_, const Tensor& w_, const Tensor& b_, const Tensor& r_) {
      return ops::relu(ops::linear(x_, w_, {}, ops::Activation::none, r_) + b_);
    };
    expect_near(jit(f)(x, w, b, r), f(x, w, b, r));
  });
}

TEST(FusedProducts, ConvolutionsKeepTheirResidual) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {1, 3, 5, 5}, 1),
               w = Tensor::random(queue, {3, 3, 1, 1}, 2);
    const auto f = [](const Tensor& x_, const Tensor& w_) {
      return ops::relu(ops::conv2d(x_, w_, {}, {}, x_ * -2.0));
    };
    expect_near(jit(f)(x, w), f(x, w));
  });
}

}  // namespace
}  // namespace netcl
