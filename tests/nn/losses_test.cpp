// Losses against plain formulas, and their gradients in float64.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/autograd.h"
#include "netcl/nn.h"
#include "support/devices.h"

namespace netcl {
namespace {

using nn::Reduction;
using test::on_every_device;
using Inputs = std::vector<Tensor>;
using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

struct LossCase {
  const char* name;
  Loss loss;
  double low, high;
  double (*plain)(double x, double t);
};

double smooth(double x, double t) {
  const double d = std::fabs(x - t);
  return d < 0.5 ? d * d : d - 0.25;
}

const LossCase kCases[] = {
    {"mse", [](const Tensor& x, const Tensor& t, Reduction r) { return nn::mse_loss(x, t, r); }, -2,
     2, [](double x, double t) { return (x - t) * (x - t); }},
    {"l1", [](const Tensor& x, const Tensor& t, Reduction r) { return nn::l1_loss(x, t, r); }, -2,
     2, [](double x, double t) { return std::fabs(x - t); }},
    {"smooth_l1",
     [](const Tensor& x, const Tensor& t, Reduction r) { return nn::smooth_l1_loss(x, t, 0.5, r); },
     -2, 2, smooth},
    {"huber",
     [](const Tensor& x, const Tensor& t, Reduction r) { return nn::huber_loss(x, t, 0.5, r); }, -2,
     2, [](double x, double t) { return 0.5 * smooth(x, t); }},
    {"bce_with_logits",
     [](const Tensor& x, const Tensor& t, Reduction r) {
       return nn::bce_with_logits_loss(x, t, 1, r);
     },
     0, 1, [](double x, double t) { return std::log1p(std::exp(x)) - x * t; }},
    {"bce_with_logits weighted",
     [](const Tensor& x, const Tensor& t, Reduction r) {
       return nn::bce_with_logits_loss(x, t, 3, r);
     },
     0, 1,
     [](double x, double t) {
       const double s = 1 / (1 + std::exp(-x));
       return -(3 * t * std::log(s) + (1 - t) * std::log(1 - s));
     }},
    {"bce", [](const Tensor& x, const Tensor& t, Reduction r) { return nn::bce_loss(x, t, r); },
     0.1, 0.9, [](double x, double t) { return -(t * std::log(x) + (1 - t) * std::log(1 - x)); }},
    {"kl_div",
     [](const Tensor& x, const Tensor& t, Reduction r) { return nn::kl_div_loss(x, t, r); }, 0.1,
     0.9, [](double x, double t) { return t * (std::log(t) - x); }},
    {"hinge", [](const Tensor& x, const Tensor& t, Reduction r) { return nn::hinge_loss(x, t, r); },
     -2, 2, [](double x, double t) { return std::max(0.0, 1 - x * t); }},
};

void check_loss(const Queue& queue, const LossCase& one) {
  SCOPED_TRACE(one.name);
  const auto values = [&](std::uint64_t seed) {
    const auto unit = Tensor::random(queue, {4, 3}, seed, Distribution::uniform, DType::float64);
    return unit * (one.high - one.low) + one.low;
  };
  const auto x = values(1), t = values(2);
  const auto xs = x.to_vector<double>(), ts = t.to_vector<double>();
  double sum = 0;
  const auto each = one.loss(x, t, Reduction::none).to_vector<double>();
  for (std::size_t i = 0; i < xs.size(); ++i) {
    EXPECT_NEAR(each[i], one.plain(xs[i], ts[i]), 1e-9);
    sum += one.plain(xs[i], ts[i]);
  }
  EXPECT_NEAR(one.loss(x, t, Reduction::sum).item(), sum, 1e-9);
  EXPECT_NEAR(one.loss(x, t, Reduction::mean).item(), sum / 12, 1e-9);
  for (const auto how : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto result =
        gradcheck([&](const Inputs& in) { return Inputs{one.loss(in[0], t, how)}; }, {x});
    EXPECT_TRUE(result) << result.message;
  }
}

TEST(Losses, values_and_gradients) {
  on_every_device([](const Queue& queue) {
    for (const auto& one : kCases) check_loss(queue, one);
  });
}

TEST(Losses, labels) {
  on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {3, 4}, 1, Distribution::normal, DType::float64);
    const auto labels = Tensor::from_host(queue, std::vector<std::int64_t>{2, 0, 3});
    EXPECT_NEAR(nn::nll_loss(ops::log_softmax(x), labels).item(),
                nn::cross_entropy(x, labels).item(), 1e-12);
    for (const auto how : {Reduction::none, Reduction::mean, Reduction::sum}) {
      const auto result = gradcheck(
          [&](const Inputs& in) {
            return Inputs{nn::nll_loss(in[0], labels, how), nn::cross_entropy(in[0], labels, how)};
          },
          {x});
      EXPECT_TRUE(result) << result.message;
    }
  });
}

TEST(Losses, extremes_are_finite) {
  on_every_device([](const Queue& queue) {
    const auto x = Tensor::from_host(queue, std::vector<float>{1000, -1000});
    const auto t = Tensor::from_host(queue, std::vector<float>{0, 1});
    EXPECT_EQ(nn::bce_with_logits_loss(x, t).item(), 1000);
    const auto p = Tensor::from_host(queue, std::vector<float>{1, 0});
    EXPECT_EQ(nn::bce_loss(p, t).item(), 100);
    const auto nothing = Tensor::from_host(queue, std::vector<float>{0, 0});
    EXPECT_EQ(nn::kl_div_loss(x, nothing).item(), 0);
  });
}

}  // namespace
}  // namespace netcl
