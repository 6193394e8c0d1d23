// What is kept of weights (folded norms, transformed filters) follows every change of them.
#include "ops/weight_forms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "netcl/autograd.h"
#include "netcl/capture.h"
#include "netcl/jit.h"
#include "netcl/nn.h"
#include "netcl/optim.h"
#include "support/devices.h"

namespace netcl {
namespace {

using test::on_every_device, test::opencl_devices;

constexpr std::int64_t kChannels = 16;

Tensor normal(const Queue& queue, const Shape& shape, std::uint64_t seed) {
  return Tensor::random(queue, shape, seed, Distribution::normal);
}

void expect_near(const Tensor& result, const Tensor& expected) {
  ASSERT_EQ(result.shape(), expected.shape());
  const auto a = result.to_vector<float>(), b = expected.to_vector<float>();
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::isnan(a[i] - b[i]) ? INFINITY : std::max<double>(worst, std::abs(a[i] - b[i]));
    largest = std::max<double>(largest, std::abs(b[i]));
  }
  EXPECT_LE(worst, 1e-4 * largest);
}

// A convolution that Winograd's method takes, a norm with values that matter, relu.
struct Model {
  std::shared_ptr<nn::Conv2d> conv;
  std::shared_ptr<nn::BatchNorm2d> norm;
  std::shared_ptr<nn::Sequential> net;
  Tensor x;

  explicit Model(const DeviceHandle& device, bool bias = true) {
    const ActiveDevice active(device);
    const ops::Conv2dOptions same{.padding = {1, 1}};
    conv = nn::make<nn::Conv2d>(kChannels, kChannels, ops::Pair{3, 3}, same, bias);
    norm = nn::make<nn::BatchNorm2d>(kChannels);
    norm->weight.copy_from(normal(device.queue, {kChannels}, 1));
    norm->bias.copy_from(normal(device.queue, {kChannels}, 2));
    norm->running_mean.copy_from(normal(device.queue, {kChannels}, 3));
    norm->running_var.copy_from(Tensor::random(device.queue, {kChannels}, 4) + 0.5);
    net = nn::make<nn::Sequential>(std::vector<nn::ModulePtr>{conv, norm, nn::relu()});
    net->eval();
    x = normal(device.queue, {2, kChannels, 12, 12}, 5);
  }

  // Layer by layer, on copies that nothing is kept of.
  Tensor expected() const {
    const no_grad off;
    const auto y = ops::conv2d(x, conv->weight.clone(), conv->bias ? conv->bias.clone() : Tensor(),
                               conv->options);
    return ops::relu(ops::batch_norm(y, norm->weight, norm->bias, norm->running_mean,
                                     norm->running_var, norm->eps));
  }

  void expect_right() const {
    const auto right = expected();
    for (int call = 0; call < 3; ++call) expect_near(net->forward(x), right);
  }

  CapturedStep captured() const {
    return CapturedStep([net = net](const Tensors& in) {
      const no_grad off;
      return Tensors{net->forward(in[0])};
    });
  }
};

// Every way to change weights that netcl can see.
std::vector<std::function<void(const Model&)>> changes(const Queue& queue) {
  KernelSpec spec{.name = "weight_forms_test_half"};
  spec.params = {"__global float* y", "int n"};
  spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] *= 0.5f;";
  const auto kernel = spec.build(queue).kernel();
  return {
      [=](const Model& m) { m.conv->weight.copy_from(normal(queue, m.conv->weight.shape(), 11)); },
      [=](const Model& m) { m.norm->weight.copy_from(normal(queue, {kChannels}, 12)); },
      [=](const Model& m) { ops::add_(m.norm->running_var, Tensor::full(queue, {kChannels}, 3)); },
      [=](const Model& m) { m.norm->running_mean.write(std::vector<float>(kChannels, 0.25F)); },
      [=](const Model& m) {
        m.conv->weight.detach().narrow(0, 3, 2).copy_from(normal(queue, {2, kChannels, 3, 3}, 13));
      },
      [=](const Model& m) { ops::fill_(m.conv->weight.detach().select(0, 1), 0.5); },
      [=](const Model& m) {
        const auto n = static_cast<int>(m.conv->weight.numel());
        kernel(queue, 4096, 64, m.conv->weight, n);
      },
      [=](const Model& m) {
        std::vector<nn::NamedTensor> state;
        for (const auto& one : m.net->state_dict())
          state.push_back({one.name, one.tensor.detach() * 0.5 + 0.1});
        m.net->load_state_dict(state);
      }};
}

TEST(WeightForms, folding_follows_every_change) {
  for (const auto& device : opencl_devices())
    for (const bool bias : {true, false}) {
      const auto before = kept_form_bytes();
      const Model model(device, bias);
      model.expect_right();
      EXPECT_GT(kept_form_bytes(), before);
      for (const auto& change : changes(device.queue)) {
        const no_grad off;
        change(model);
        model.expect_right();
      }
    }
}

TEST(WeightForms, replays_follow_every_change) {
  for (const auto& device : opencl_devices()) {
    const Model model(device);
    auto step = model.captured();
    for (int call = 0; call < 3; ++call) expect_near(step({model.x})[0], model.expected());
    for (const auto& change : changes(device.queue)) {
      const no_grad off;
      change(model);
      for (int call = 0; call < 2; ++call) expect_near(step({model.x})[0], model.expected());
      model.expect_right();
    }
    EXPECT_EQ(step.stats().captures, 1U);
    EXPECT_GT(step.stats().replays, 8U);
  }
}

// A replay changes weights without an op being called: others have to learn of it.
TEST(WeightForms, replayed_training_is_seen_by_replayed_and_by_plain_inference) {
  for (const auto& device : opencl_devices()) {
    const Model model(device);
    optim::SGD sgd(model.net->parameters(), {.lr = 0.05});
    CapturedStep train([&](const Tensors& in) {
      Tape tape;
      const auto loss = ops::mean(ops::square(model.net->forward(in[0])));
      sgd.zero_grad();
      tape.backward(loss);
      sgd.step();
      return Tensors{loss};
    });
    auto infer = model.captured();
    for (int round = 0; round < 5; ++round) {
      train({model.x});
      for (int call = 0; call < 3; ++call) expect_near(infer({model.x})[0], model.expected());
      model.expect_right();
    }
    EXPECT_GT(train.stats().replays, 2U);
    EXPECT_GT(infer.stats().replays, 10U);
  }
}

TEST(WeightForms, what_a_step_changes_itself_stays_inside) {
  const ops::Conv2dOptions same{.padding = {1, 1}};
  for (const auto& device : opencl_devices()) {
    const auto x = normal(device.queue, {1, kChannels, 12, 12}, 1);
    const auto start = normal(device.queue, {kChannels, kChannels, 3, 3}, 2);
    const auto function = [&](const Tensor& w) {
      return [&same, w](const Tensors& in) {
        const auto before = ops::conv2d(in[0], w, {}, same);
        ops::mul_(w, Tensor::full(w.queue(), {1}, 0.75));
        const auto after = ops::conv2d(in[0], w, {}, same) + ops::conv2d(in[0], w, {}, same);
        const auto made = w * 2.0;
        return Tensors{before, after,
                       ops::conv2d(in[0], made, {}, same) + ops::conv2d(in[0], made, {}, same)};
      };
    };
    const auto w = start.clone(), eager = start.clone();
    // Seen and kept before the step is recorded.
    for (int call = 0; call < 3; ++call) ops::conv2d(x, w, {}, same);
    CapturedStep step(function(w));
    for (int call = 0; call < 5; ++call) {
      const auto results = step({x});
      const auto expected = function(eager.clone())({x});
      ops::mul_(eager, Tensor::full(device.queue, {1}, 0.75));
      for (std::size_t i = 0; i < results.size(); ++i) expect_near(results[i], expected[i]);
    }
    EXPECT_EQ(step.stats().replays, 3U);
  }
}

// Replays write their results again: as weights they are never known to stay.
TEST(WeightForms, results_of_a_step_as_weights) {
  const ops::Conv2dOptions same{.padding = {1, 1}};
  for (const auto& device : opencl_devices()) {
    const auto x = normal(device.queue, {1, kChannels, 12, 12}, 1);
    CapturedStep make([](const Tensors& in) { return Tensors{in[0] * 2.0}; });
    for (std::uint64_t call = 0; call < 5; ++call) {
      const auto w = make({normal(device.queue, {kChannels, kChannels, 3, 3}, call)})[0];
      for (int use = 0; use < 3; ++use)
        expect_near(ops::conv2d(x, w, {}, same), ops::conv2d(x, w.clone(), {}, same));
    }
  }
}

TEST(WeightForms, memory_that_others_can_write) {
  const ops::Conv2dOptions same{.padding = {1, 1}};
  const Shape shape{kChannels, kChannels, 3, 3};
  for (const auto& device : opencl_devices()) {
    const auto x = normal(device.queue, {1, kChannels, 12, 12}, 1);
    const auto before = kept_form_bytes();
    alignas(4096) static float values[kChannels * kChannels * 9];
    const auto adopted = Tensor::adopt_host(device.queue, values, shape, DType::float32);
    const auto given_out = normal(device.queue, shape, 2);
    given_out.buffer();
    for (const auto& w : {adopted, given_out})
      for (int use = 0; use < 3; ++use) ops::conv2d(x, w, {}, same);
    EXPECT_EQ(kept_form_bytes(), before);
  }
}

TEST(WeightForms, nothing_is_kept_in_training_and_all_goes_with_the_weights) {
  for (const auto& device : opencl_devices()) {
    const auto before = kept_form_bytes();
    {
      const Model model(device);
      optim::SGD sgd(model.net->parameters(), {.lr = 0.05});
      model.net->train();
      for (int i = 0; i < 4; ++i) {
        Tape tape;
        tape.backward(ops::mean(ops::square(model.net->forward(model.x))));
        sgd.step();
        sgd.zero_grad();
      }
      EXPECT_EQ(kept_form_bytes(), before);
      model.net->eval();
      model.expect_right();
      EXPECT_GT(kept_form_bytes(), before);
    }
    EXPECT_EQ(kept_form_bytes(), before);
  }
}

// Calls that are remembered read the weights too, and must not make them memory of others.
TEST(WeightForms, are_kept_again_after_each_training) {
  for (const auto& device : opencl_devices()) {
    const auto before = kept_form_bytes();
    const Model model(device);
    optim::Adam adam(model.net->parameters(), {.lr = 0.01});
    for (int round = 0; round < 3; ++round) {
      model.net->train();
      for (int i = 0; i < 4; ++i) {
        Tape tape;
        tape.backward(ops::mean(ops::square(model.net->forward(model.x))));
        adam.step();
        adam.zero_grad();
      }
      model.net->eval();
      model.expect_right();
      EXPECT_GT(kept_form_bytes(), before) << "round " << round;
    }
  }
}

TEST(WeightForms, go_when_memory_is_short_unless_a_replay_needs_them) {
  for (const auto& device : opencl_devices()) {
    const auto before = kept_form_bytes();
    const Model model(device), other(device);
    auto step = model.captured();
    for (int call = 0; call < 3; ++call) step({model.x});
    const auto needed = kept_form_bytes();
    other.expect_right();
    EXPECT_GT(kept_form_bytes(), needed);
    EXPECT_THROW(Tensor::empty(device.queue, {std::int64_t{1} << 50}), OutOfMemory);
    EXPECT_EQ(kept_form_bytes(), needed);
    EXPECT_GT(needed, before);
    expect_near(step({model.x})[0], model.expected());
    other.expect_right();
  }
}

TEST(WeightForms, tapes_and_scopes_around) {
  for (const auto& device : opencl_devices()) {
    const Model model(device);
    model.expect_right();
    auto x = model.x;
    x.set_requires_grad();
    Tape tape;
    tape.backward(ops::sum(model.net->forward(x)));
    ASSERT_TRUE(model.conv->weight.grad()) << "in evaluation, too, a tape sees all layers";
    ASSERT_TRUE(model.norm->weight.grad());
    tape.stop();
    const auto fused = jit([net = model.net](const Tensor& in) { return net->forward(in) * 2.0; });
    const no_grad off;
    for (int call = 0; call < 3; ++call) expect_near(fused(model.x), model.expected() * 2.0);
  }
}

TEST(WeightForms, threads) {
  for (const auto& device : opencl_devices()) {
    const Model model(device);
    for (std::uint64_t round = 0; round < 4; ++round) {
      {
        const no_grad off;
        model.conv->weight.copy_from(normal(device.queue, model.conv->weight.shape(), round));
      }
      const auto right = model.expected();
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
          const ActiveDevice active(device);
          for (int call = 0; call < 5; ++call) expect_near(model.net->forward(model.x), right);
        });
      for (auto& thread : threads) thread.join();
    }
  }
}

TEST(WeightForms, residual_networks) {
  for (const auto& device : opencl_devices()) {
    const ActiveDevice active(device);
    nn::manual_seed(3);
    const auto net =
        nn::resnet({.depth = 18, .classes = 5, .channels = 3, .width = 8, .small_images = true});
    const auto x = normal(device.queue, {2, 3, 16, 16}, 1);
    net->train();
    {
      const no_grad off;
      for (int i = 0; i < 2; ++i) net->forward(x);  // statistics of their own
    }
    net->eval();
    const no_grad off;
    const auto plain = net->forward(x);  // the first look: nothing is folded yet
    for (int call = 0; call < 3; ++call) expect_near(net->forward(x), plain);
  }
}

}  // namespace
}  // namespace netcl
