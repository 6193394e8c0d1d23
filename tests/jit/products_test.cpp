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

TEST(FusedProducts, TakeBiasResidualAndActivationIn) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {5, 7}, 1), w = Tensor::random(queue, {7, 6}, 2),
               b = Tensor::random(queue, {6}, 3), r = Tensor::random(queue, {5, 6}, 4) - 0.5;
    const auto f = [](const Tensor& x_, const Tensor& w_, const Tensor& b_, const Tensor& r_) {
      return ops::gelu(ops::matmul(x_, w_) + b_ + r_);
    };
    const auto g = [](const Tensor& x_, const Tensor& w_, const Tensor& b_, const Tensor& r_) {
      return ops::relu(r_ + ops::matmul(x_, w_) + b_);  // the residual first
    };
    expect_near(jit(f)(x, w, b, r), f(x, w, b, r));
    expect_near(jit(g)(x, w, b, r), g(x, w, b, r));
    EXPECT_EQ(explain(f, x, w, b, r).groups.size(), 1u);
    EXPECT_EQ(explain(g, x, w, b, r).groups.size(), 1u);
    // Two residuals: the second is an addition of its own.
    const auto h = [&] { return ops::matmul(x, w) + r + r; };
    expect_near(jit(h)(), h());
  });
}

TEST(FusedProducts, AResidualBlockIsTwoKernels) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {2, 4, 6, 6}, 1),
               w1 = Tensor::random(queue, {4, 4, 3, 3}, 2) - 0.5,
               w2 = Tensor::random(queue, {4, 4, 3, 3}, 3) - 0.5, b = Tensor::random(queue, {4}, 4);
    const auto f = [&] {
      const ops::Conv2dOptions padded{.padding = {1, 1}};
      const auto h = ops::relu(ops::bias_add(ops::conv2d(x, w1, {}, padded), b));
      return ops::relu(ops::bias_add(ops::conv2d(h, w2, {}, padded), b) + x);
    };
    const auto fused = jit(f)(), plain = f();
    const auto a = fused.to_vector<double>(), e = plain.to_vector<double>();
    for (std::size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(a[i], e[i], 1e-4) << i;
    EXPECT_EQ(explain(f).groups.size(), 2u);
  });
}

}  // namespace
}  // namespace netcl
