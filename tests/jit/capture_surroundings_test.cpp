// Captured steps and what surrounds them: memory, other steps, tapes, scopes, threads, profiles.
#include <atomic>
#include <thread>

#include "jit/capture_fixture.h"
#include "netcl/nn.h"
#include "netcl/optim.h"
#include "netcl/profiling.h"

namespace netcl {
namespace {

using test::expect_as_eager;
using test::expect_same_bits;
using test::labels_of;
using test::message_of;
using test::normal;
using test::on_every_device;
using test::Tensors;

TEST(Capture, bad_calls) {
  EXPECT_THROW(CapturedStep(nullptr), ArgumentError);
  on_every_device([](const Queue& queue) {
    CapturedStep step([](const Tensors& in) -> Tensors { return in; });
    EXPECT_NE(message_of<ArgumentError>([&] {
                step({Tensor::full(queue, {1}, 1), Tensor()});
              }).find("input 1"),
              std::string::npos);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(step({Tensor::from_shape(queue, {0, 3})})[0].shape(), (Shape{0, 3}));
  });
}

TEST(Capture, memory_stays_as_it_is) {
  for (const auto& device : test::opencl_devices()) {
    const auto& queue = device.queue;
    const auto w = normal(queue, {32, 32}, 1);
    CapturedStep step([&](const Tensors& in) -> Tensors {
      auto y = in[0];
      for (int i = 0; i < 8; ++i) y = ops::relu(ops::matmul(y, w) * 0.1);
      return {y};
    });
    const auto x = normal(queue, {32, 32}, 2);
    for (int i = 0; i < 3; ++i) step({x});
    // Memory that the step releases is used again by its later commands: 24 results, few buffers.
    EXPECT_LE(step.stats().bytes, 6U * 32 * 32 * 4);
    const auto pool = get_persistent_pool(queue);
    const auto before = pool->get_stats();
    const auto bytes = step.stats().bytes;
    for (int i = 0; i < 2000; ++i) step({x});
    step.wait();
    const auto after = pool->get_stats();
    EXPECT_EQ(after.bytes_allocated, before.bytes_allocated);
    EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
    EXPECT_EQ(after.misses + after.hits, before.misses + before.hits);  // nothing is even asked for
    EXPECT_EQ(step.stats().bytes, bytes);
  }
}

TEST(Capture, nobody_else_gets_its_memory) {
  for (const auto& device : test::opencl_devices()) {
    const auto& queue = device.queue;
    // Both the temporaries and a parameter that only the recording still needs.
    auto parameter = normal(queue, {100, 100}, 5);
    const auto copy = parameter.clone();
    auto step = CapturedStep([&](const Tensors& in) -> Tensors {
      const auto a = in[0] * 2.0, b = a + parameter;
      return {ops::exp(b) - a};
    });
    const auto x = normal(queue, {100, 100}, 6);
    const auto a = x * 2.0, expected = ops::exp(a + copy) - a;
    for (int i = 0; i < 2; ++i) step({x});
    parameter = {};
    const auto pool = get_persistent_pool(queue);
    const auto in_use = pool->stats().bytes_in_use;
    for (int round = 0; round < 10; ++round) {
      const auto result = step({x})[0];
      Tensors garbage;
      for (int i = 0; i < 20; ++i) garbage.push_back(Tensor::full(queue, {100, 100}, 1e30));
      expect_same_bits(result, expected);
      step({x});
      for (const auto& one : garbage) expect_same_bits(one, Tensor::full(queue, {100, 100}, 1e30));
    }
    EXPECT_EQ(pool->stats().bytes_in_use, in_use);
    step.clear();  // only now the parameter's memory goes back
    EXPECT_LT(pool->stats().bytes_in_use, in_use);
  }
}

TEST(Capture, tensors_outlive_the_step) {
  for (const auto& device : test::opencl_devices()) {
    const auto& queue = device.queue;
    Tensor elsewhere, result;
    const auto x = normal(queue, {300}, 1);
    {
      CapturedStep step([&](const Tensors& in) -> Tensors {
        elsewhere = in[0] * 3.0;  // as a gradient is stored
        return {elsewhere + 1.0};
      });
      for (int i = 0; i < 3; ++i) result = step({normal(queue, {300}, 7)})[0];
      result = step({x})[0];
    }
    Tensors garbage;
    for (int i = 0; i < 10; ++i) garbage.push_back(Tensor::full(queue, {300}, -1.0));
    expect_same_bits(elsewhere, x * 3.0);
    expect_same_bits(result, x * 3.0 + 1.0);
  }
}

TEST(Capture, results_are_inputs_of_the_next_call) {
  on_every_device([](const Queue& queue) {
    CapturedStep swap([](const Tensors& in) -> Tensors { return {in[1], in[0], in[0] + in[1]}; });
    auto a = Tensor::full(queue, {4}, 1.0), b = Tensor::full(queue, {4}, 2.0);
    for (int i = 1; i <= 6; ++i) {
      auto results = swap({a, b});
      a = results[0], b = results[1];
      EXPECT_EQ(a.to_vector<float>()[0], i % 2 == 1 ? 2.0F : 1.0F) << i;
      EXPECT_EQ(b.to_vector<float>()[0], i % 2 == 1 ? 1.0F : 2.0F) << i;
      EXPECT_EQ(results[2].to_vector<float>()[0], 3.0F);
    }
  });
}

TEST(Capture, two_steps_interleaved_and_one_inside_another) {
  on_every_device([](const Queue& queue) {
    const auto state = Tensor::from_shape(queue, {16});
    CapturedStep up([&](const Tensors& in) -> Tensors { return {ops::add_(state, in[0]) * 1.0}; });
    CapturedStep twice(
        [&](const Tensors& in) -> Tensors { return {ops::mul_(state, 2.0) + in[0]}; });
    float expected = 0;
    const auto one = Tensor::full(queue, {16}, 1.0);
    for (int i = 0; i < 6; ++i) {
      const auto a = up({one})[0], b = twice({one})[0];
      EXPECT_EQ(a.to_vector<float>()[3], expected + 1);
      expected = (expected + 1) * 2;
      EXPECT_EQ(b.to_vector<float>()[7], expected + 1);
    }
    CapturedStep outer([&](const Tensors& in) -> Tensors { return {up(in)[0] + 1.0}; });
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(outer({one})[0].to_vector<float>()[0], expected + 2);
      expected += 1;
    }
    EXPECT_EQ(outer.stats().replays, queue.is_cpu() ? 0U : 4U);
  });
}

// A tape must see the ops themselves, so nothing is replayed under one.
TEST(Capture, under_a_tape_every_call_runs_the_function) {
  on_every_device([](const Queue& queue) {
    int runs = 0;
    CapturedStep step([&](const Tensors& in) -> Tensors {
      ++runs;
      return {in[0] + 1.0};
    });
    const auto x = Tensor::full(queue, {4}, 1.0);
    for (int i = 0; i < 3; ++i) step({x});
    const auto before = runs;
    auto leaf = Tensor::full(queue, {4}, 2.0);
    leaf.set_requires_grad();
    Tape tape;
    for (int i = 0; i < 3; ++i) step({x});
    const auto y = step({leaf})[0];
    EXPECT_EQ(runs, before + 4);
    tape.backward(ops::sum(y * y));
    EXPECT_EQ(leaf.grad().to_vector<float>(), std::vector<float>(4, 6.0F));
    EXPECT_EQ(step.why_not(), "a tape around the call follows it");
  });
}

TEST(Capture, in_a_scope_that_defers_every_call_runs_the_function) {
  on_every_device([](const Queue& queue) {
    const auto w = Tensor::full(queue, {4}, 1.0);
    int runs = 0;
    CapturedStep step([&](const Tensors& in) -> Tensors {
      ++runs;
      ops::add_(w, in[0]);
      return {w + in[0]};
    });
    const auto x = Tensor::full(queue, {4}, 1.0);
    for (int i = 0; i < 3; ++i) step({x});
    const auto before = runs;
    FusionScope scope;
    const auto waits = w * 10.0;  // of the values before the step
    step({x});
    EXPECT_EQ(runs, before + 1);
    EXPECT_EQ(step.why_not(), "a scope around the call defers its ops");
    EXPECT_EQ(waits.to_vector<float>(), std::vector<float>(4, 40.0F));
    EXPECT_EQ(w.to_vector<float>(), std::vector<float>(4, 5.0F));
  });
}

TEST(Capture, a_scope_inside_the_step_is_recorded_fused) {
  on_every_device([](const Queue& queue) {
    Tensor elsewhere;
    const auto function = [&](const Tensors& in) -> Tensors {
      FusionScope scope;
      const auto y = ops::relu(in[0] * 2.0 + 1.0) - in[0];
      elsewhere = y * 0.5;
      return {ops::exp(y), ops::sum(y)};
    };
    expect_as_eager(
        function,
        [&](int call) -> Tensors { return {normal(queue, {77}, static_cast<unsigned>(call))}; },
        !queue.is_cpu());
    CapturedStep step(function);
    for (int i = 0; i < 4; ++i) step({Tensor::full(queue, {77}, i)});
    EXPECT_EQ(elsewhere.to_vector<float>(), std::vector<float>(77, 2.0F));
  });
}

TEST(Capture, state_of_the_host_keeps_it_eager) {
  on_every_device([](const Queue& queue) {
    nn::Dropout dropout(0.5);
    CapturedStep dropping([&](const Tensors& in) -> Tensors { return {dropout.forward(in[0])}; });
    const auto ones = Tensor::full(queue, {1000}, 1.0);
    nn::manual_seed(1);
    Tensors eager;
    for (int i = 0; i < 4; ++i) eager.push_back(dropout.forward(ones));
    nn::manual_seed(1);
    for (int i = 0; i < 4; ++i)
      expect_same_bits(dropping({ones})[0], eager[static_cast<std::size_t>(i)]);
    if (!queue.is_cpu())
      EXPECT_EQ(dropping.why_not(), "next_seed() draws another seed at each call");
  });
}

// Optimisers count their steps on the host, and a schedule changes the rate there.
template <class Optimizer>
void expect_replays_like_eager(const Queue& queue) {
  const auto train = [](const Tensor& w, const Tensor& other, bool captured) {
    Optimizer optimizer(std::vector<Tensor>{w, other});
    const auto function = [&](const Tensors& in) -> Tensors {
      w.set_grad(in[0] * w.detach());
      other.set_grad(in[0].narrow(0, 0, 3));
      optimizer.step();
      return {};
    };
    CapturedStep step(function);
    for (int i = 0; i < 8; ++i) {
      optimizer.set_lr(0.1 / (i + 1));
      const Tensors in = {normal(w.queue(), {20}, static_cast<unsigned>(i))};
      if (captured)
        step(in);
      else
        function(in);
    }
    EXPECT_EQ(optimizer.steps(), 8);
    for (const auto steps : optimizer.state().parameter_steps) EXPECT_EQ(steps, 8);
    if (captured && !w.queue().is_cpu()) EXPECT_EQ(step.stats().replays, 6u) << step.why_not();
  };
  auto a = normal(queue, {20}, 7), b = a.clone(), c = normal(queue, {3}, 8), d = c.clone();
  for (auto* one : {&a, &b, &c, &d}) one->set_requires_grad();
  train(a, c, true);
  train(b, d, false);
  expect_same_bits(a, b);
  expect_same_bits(c, d);
}

TEST(Capture, optimisers_go_on_counting) {
  on_every_device([](const Queue& queue) {
    expect_replays_like_eager<optim::SGD>(queue);
    expect_replays_like_eager<optim::Adam>(queue);
    expect_replays_like_eager<optim::AdamW>(queue);
    expect_replays_like_eager<optim::RMSProp>(queue);
  });
}

TEST(Capture, an_optimiser_that_is_gone_is_an_error) {
  NETCL_NEED_OPENCL();
  const auto queue = test::opencl_devices()[0].queue;
  auto w = normal(queue, {20}, 7);
  w.set_requires_grad();
  auto adam = std::make_unique<optim::Adam>(std::vector<Tensor>{w});
  CapturedStep step([&](const Tensors& in) -> Tensors {
    w.set_grad(in[0]);
    adam->step();
    return {};
  });
  for (int i = 0; i < 3; ++i) step({w.detach()});
  adam.reset();
  EXPECT_THROW(step({w.detach()}), ArgumentError);
}

TEST(Capture, threads_capture_at_once) {
  for (const auto& device : test::opencl_devices()) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    CapturedStep shared([](const Tensors& in) -> Tensors { return {in[0] * 2.0 + 1.0}; });
    const auto total = Tensor::from_shape(device.queue, {8});
    CapturedStep counting([&](const Tensors& in) -> Tensors {
      ops::add_(total, in[0]);
      return {};
    });
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const auto queue = t % 2 == 0
                               ? device.queue
                               : Queue::create(device.queue.context(), device.queue.device());
        const auto w = normal(queue, {32, 32}, 1);
        CapturedStep own([&](const Tensors& in) -> Tensors {
          return {ops::sum(ops::softmax(ops::matmul(in[0], w)) * in[0])};
        });
        for (int i = 0; i < 50; ++i) {
          const auto x = normal(queue, {32, 32}, static_cast<unsigned>(100 * t + i));
          const auto expected = ops::sum(ops::softmax(ops::matmul(x, w)) * x).item();
          if (own({x})[0].item() != expected) ++wrong;
          shared({x});
          counting({Tensor::full(device.queue, {8}, 1.0)});
        }
        if (own.stats().replays != 48) ++wrong;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(total.to_vector<float>(), std::vector<float>(8, 200.0F));
  }
}

TEST(Capture, profiles_count_replayed_launches) {
  for (const auto& device : test::opencl_devices()) {
    const auto queue = Queue::create(device.queue.context(), device.queue.device(), true);
    KernelSpec spec{.name = "capture_test_counted"};
    spec.params = {"__global float* y", "int n"};
    spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] += 1;";
    const auto kernel = spec.build(queue).kernel();
    CapturedStep step([&](const Tensors& in) -> Tensors {
      auto y = in[0].clone();
      const CostScope cost({.flops = 1e6});
      for (int i = 0; i < 3; ++i) kernel(queue, 64, 16, y, 64);
      return {y};
    });
    clear_profile();
    start_profiling();
    for (int i = 0; i < 5; ++i) step({Tensor::full(queue, {64}, 1.0)});
    step.wait();
    stop_profiling();
    std::uint64_t count = 0;
    for (const auto& summary : kernel_summary())
      if (summary.name == "capture_test_counted") {
        count += summary.count;
        EXPECT_GT(summary.total_ms, 0);
        EXPECT_GT(summary.gflops, 0);
      }
    clear_profile();
    EXPECT_EQ(count, 15U);
  }
}

}  // namespace
}  // namespace netcl
