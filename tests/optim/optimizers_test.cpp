// Optimisers against the formulas written out in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/autograd.h"
#include "netcl/optim.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using optim::Optimizer;
using test::message_of, test::on_every_device;

// One parameter of the reference.
struct Plain {
  double x, a = 0, b = 0;
  int step = 0;
};
using PlainStep = std::function<void(Plain&, double gradient)>;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;

// Eleven parameters of many sizes (two launches), of which the third gets a gradient every other
// step only.
void check(const Queue& queue, DType dtype, const MakeOptimizer& make, const PlainStep& plain,
           double tolerance) {
  std::vector<Tensor> parameters;
  std::vector<std::vector<Plain>> expected;
  for (const std::int64_t n : {1, 7, 300, 64, 2, 1000, 33, 5, 20000, 3, 17}) {
    auto tensor = Tensor::random(queue, {n}, static_cast<std::uint64_t>(n), Distribution::normal,
                                 DType::float64)
                      .astype(dtype);
    tensor.set_requires_grad();
    auto& values = expected.emplace_back();
    for (const auto value : tensor.to_vector<double>()) values.push_back({value});
    parameters.push_back(tensor);
  }
  const auto optimizer = make(parameters);
  for (int step = 0; step < 5; ++step) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      if (k == 2 && step % 2 == 1) {
        parameters[k].set_grad({});
        continue;
      }
      const auto gradient =
          Tensor::random(queue, parameters[k].shape(), 100 * static_cast<std::uint64_t>(step) + k,
                         Distribution::normal, DType::float64)
              .astype(dtype);
      parameters[k].set_grad(gradient);
      const auto values = gradient.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        ++expected[k][i].step;
        plain(expected[k][i], values[i]);
      }
    }
    optimizer->step();
  }
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const auto values = parameters[k].to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[k][i].x, tolerance * (1 + std::fabs(expected[k][i].x)))
          << "parameter " << k << " element " << i;
  }
}

void check_dtypes(const MakeOptimizer& make, const PlainStep& plain) {
  on_every_device([&](const Queue& queue) {
    check(queue, DType::float32, make, plain, 1e-5);
    check(queue, DType::float64, make, plain, 1e-12);
    check(queue, DType::float16, make, plain, 5e-3);
  });
}

template <class T, class Options>
MakeOptimizer maker(Options options) {
  return [=](std::vector<Tensor> parameters) {
    return std::make_unique<T>(std::move(parameters), options);
  };
}

TEST(SGD, plain) {
  check_dtypes(maker<optim::SGD>(optim::SGDOptions{.lr = 0.1}),
               [](Plain& p, double g) { p.x -= 0.1 * g; });
}

TEST(SGD, momentum_dampening_decay) {
  check_dtypes(maker<optim::SGD>(optim::SGDOptions{
                   .lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01}),
               [](Plain& p, double g) {
                 g += 0.01 * p.x;
                 p.a = p.step == 1 ? g : 0.9 * p.a + 0.7 * g;
                 p.x -= 0.1 * p.a;
               });
}

TEST(SGD, nesterov) {
  check_dtypes(maker<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.8, .nesterov = true}),
               [](Plain& p, double g) {
                 p.a = p.step == 1 ? g : 0.8 * p.a + g;
                 p.x -= 0.1 * (g + 0.8 * p.a);
               });
}

PlainStep plain_adam(bool decoupled) {
  return [=](Plain& p, double g) {
    if (decoupled)
      p.x -= 0.01 * 0.1 * p.x;
    else
      g += 0.1 * p.x;
    p.a = 0.9 * p.a + 0.1 * g;
    p.b = 0.95 * p.b + 0.05 * g * g;
    const double m = p.a / (1 - std::pow(0.9, p.step)), v = p.b / (1 - std::pow(0.95, p.step));
    p.x -= 0.01 * m / (std::sqrt(v) + 1e-6);
  };
}
const optim::AdamOptions kAdam{
    .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};

TEST(Adam, against_the_formula) { check_dtypes(maker<optim::Adam>(kAdam), plain_adam(false)); }
TEST(AdamW, against_the_formula) { check_dtypes(maker<optim::AdamW>(kAdam), plain_adam(true)); }

TEST(RMSProp, against_the_formula) {
  check_dtypes(maker<optim::RMSProp>(optim::RMSPropOptions{
                   .lr = 0.01, .alpha = 0.9, .eps = 1e-6, .weight_decay = 0.1, .momentum = 0.5}),
               [](Plain& p, double g) {
                 g += 0.1 * p.x;
                 p.a = 0.9 * p.a + 0.1 * g * g;
                 p.b = 0.5 * p.b + g / (std::sqrt(p.a) + 1e-6);
                 p.x -= 0.01 * p.b;
               });
}

Tensor parameter(const Queue& queue, std::vector<float> values) {
  auto tensor = Tensor::from_host(queue, values);
  tensor.set_requires_grad();
  return tensor;
}

TEST(Optimizer, a_restored_state_goes_on_the_same) {
  on_every_device([](const Queue& queue) {
    const auto run = [&](bool interrupted) {
      auto p = parameter(queue, {1, 2, 3});
      auto optimizer = std::make_unique<optim::Adam>(std::vector<Tensor>{p});
      for (int step = 0; step < 6; ++step) {
        if (interrupted && step == 3) {
          auto state = optimizer->state();
          for (auto& one : state.tensors) one.tensor = one.tensor.clone();
          optimizer = std::make_unique<optim::Adam>(std::vector<Tensor>{p});
          optimizer->load_state(state);
        }
        p.set_grad(Tensor::random(queue, {3}, static_cast<std::uint64_t>(step)));
        optimizer->step();
      }
      return p.to_vector<float>();
    };
    EXPECT_EQ(run(true), run(false));
  });
}

TEST(Optimizer, groups_have_settings_of_their_own) {
  on_every_device([](const Queue& queue) {
    auto a = parameter(queue, {1}), b = parameter(queue, {1});
    optim::SGD sgd(std::vector<optim::ParameterGroup>{{{a}, 1, 0}, {{b}, 0.5, 1}},
                   {.lr = 0.1, .weight_decay = 0.2});
    a.set_grad(Tensor::full(queue, {1}, 1));
    b.set_grad(Tensor::full(queue, {1}, 1));
    sgd.step();
    EXPECT_FLOAT_EQ(static_cast<float>(a.item()), 0.9f);
    EXPECT_FLOAT_EQ(static_cast<float>(b.item()), 0.9f);
    sgd.zero_grad();
    EXPECT_FALSE(a.grad());
  });
}

TEST(Optimizer, steps_inside_of_a_tape) {
  on_every_device([](const Queue& queue) {
    auto p = parameter(queue, {1, 2});
    optim::SGD sgd({p}, {.lr = 0.5});
    Tape tape;
    tape.backward(ops::sum(p * p));
    sgd.step();
    EXPECT_EQ(p.to_vector<float>(), (std::vector<float>{0, 0}));
    EXPECT_TRUE(p.requires_grad());
  });
}

TEST(Optimizer, bad_settings_are_named) {
  const auto queue = manager().default_device("cpu").queue;
  auto p = parameter(queue, {1});
  const auto expect = [](const char* part, const std::function<void()>& f) {
    const auto message = message_of<ArgumentError>(f);
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  expect("at least one", [] { optim::SGD(std::vector<Tensor>{}); });
  expect("lr must be", [&] { optim::SGD({p}, {.lr = -1}); });
  expect("lr must be", [&] { optim::SGD({p}, {.lr = NAN}); });
  expect("momentum must be", [&] { optim::SGD({p}, {.momentum = 1}); });
  expect("Nesterov", [&] { optim::SGD({p}, {.nesterov = true}); });
  expect("beta2", [&] { optim::Adam({p}, {.beta2 = 1}); });
  expect("must require a gradient", [&] { optim::SGD({Tensor::from_shape(queue, {1})}); });
  optim::Adam adam({p});
  auto q = parameter(queue, {1});
  expect("2 parameters", [&] { optim::Adam({p, q}).load_state(adam.state()); });
  expect("0 and 2 are the same", [&] { optim::SGD({p, q, p}); });
}

// ---- clipping

TEST(Clipping, by_norm_and_by_value) {
  on_every_device([](const Queue& queue) {
    auto a = parameter(queue, {0, 0}), b = parameter(queue, {0});
    const auto set = [&] {
      a.set_grad(Tensor::from_host(queue, std::vector<float>{3, 0}));
      b.set_grad(Tensor::from_host(queue, std::vector<float>{4}));
    };
    set();
    EXPECT_NEAR(optim::clip_grad_norm({a, b}, 1).item(), 5, 1e-5);
    EXPECT_NEAR(a.grad().to_vector<float>()[0], 0.6, 1e-5);
    EXPECT_NEAR(b.grad().item(), 0.8, 1e-5);
    set();
    optim::clip_grad_norm({a, b}, 10);
    EXPECT_EQ(b.grad().item(), 4);
    optim::clip_grad_value({a, b}, 3.5);
    EXPECT_EQ(b.grad().item(), 3.5);
    b.set_grad(Tensor::full(queue, {1}, INFINITY));
    EXPECT_TRUE(std::isinf(optim::clip_grad_norm({a, b}, 1).item()));
    EXPECT_EQ(a.grad().to_vector<float>()[0], 3);
  });
}

// ---- averages, scaling

TEST(EMA, follows_the_weights) {
  on_every_device([](const Queue& queue) {
    nn::manual_seed(1);
    nn::Linear model(2, 1);
    model.to(queue);
    optim::EMA ema(model, 0.5);
    const auto before = model.weight.to_vector<float>();
    model.weight.detach().copy_from(Tensor::full(queue, {1, 2}, 10));
    ema.update(model);
    const double decay = 2.0 / 11;
    EXPECT_NEAR(ema.averages()[0].tensor.to_vector<float>()[0],
                decay * before[0] + (1 - decay) * 10, 1e-5);
    ema.copy_to(model);
    EXPECT_NEAR(model.weight.to_vector<float>()[1], decay * before[1] + (1 - decay) * 10, 1e-5);
  });
}

TEST(GradScaler, leaves_out_steps_that_overflow) {
  on_every_device([](const Queue& queue) {
    auto p = parameter(queue, {1});
    optim::SGD sgd({p}, {.lr = 1});
    optim::GradScaler scaler(1024, 2);
    {
      Tape tape;
      tape.backward(scaler.scale_loss(ops::sum(p * 0.25)));
    }
    EXPECT_TRUE(scaler.step(sgd));
    EXPECT_FLOAT_EQ(static_cast<float>(p.item()), 0.75f);
    p.set_grad(Tensor::full(queue, {1}, INFINITY));
    EXPECT_FALSE(scaler.step(sgd));
    EXPECT_EQ(scaler.scale(), 512);
    EXPECT_FLOAT_EQ(static_cast<float>(p.item()), 0.75f);
    for (int i = 0; i < 2; ++i) {
      p.set_grad(Tensor::full(queue, {1}, 0));
      EXPECT_TRUE(scaler.step(sgd));
    }
    EXPECT_EQ(scaler.scale(), 1024);
  });
}

// ---- schedules

TEST(Schedules, rates) {
  const auto queue = manager().default_device("cpu").queue;
  const auto fresh = [&] {
    return std::make_shared<optim::SGD>(std::vector<Tensor>{parameter(queue, {1})},
                                        optim::SGDOptions{.lr = 1});
  };
  auto sgd = fresh();
  optim::StepSchedule steps(sgd, 2, 0.5);
  std::vector<double> seen;
  for (int i = 0; i < 5; ++i, steps.step()) seen.push_back(sgd->lr());
  EXPECT_EQ(seen, (std::vector<double>{1, 1, 0.5, 0.5, 0.25}));

  sgd = fresh();
  optim::CosineSchedule cosine(sgd, 10, 2, 0.1);
  EXPECT_NEAR(sgd->lr(), 1.0 / 3, 1e-12);
  cosine.step();
  cosine.step();
  EXPECT_NEAR(sgd->lr(), 1, 1e-12);
  for (int i = 0; i < 4; ++i) cosine.step();
  EXPECT_NEAR(sgd->lr(), 0.55, 1e-12);
  const auto state = cosine.state();
  for (int i = 0; i < 9; ++i) cosine.step();
  EXPECT_NEAR(sgd->lr(), 0.1, 1e-12);
  cosine.load_state(state);
  EXPECT_NEAR(sgd->lr(), 0.55, 1e-12);

  sgd = fresh();
  optim::WarmupSchedule warmup(sgd, 3);
  EXPECT_NEAR(sgd->lr(), 0.25, 1e-12);
  for (int i = 0; i < 5; ++i) warmup.step();
  EXPECT_NEAR(sgd->lr(), 1, 1e-12);

  sgd = fresh();
  optim::PlateauSchedule plateau(sgd, 0.5, 1);
  for (const double loss : {3.0, 2.0, 2.0}) plateau.step(loss);
  EXPECT_EQ(sgd->lr(), 1);
  plateau.step(2.0);
  EXPECT_EQ(sgd->lr(), 0.5);
}

}  // namespace
}  // namespace netcl
