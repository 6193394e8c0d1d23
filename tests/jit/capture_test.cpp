// Captured steps compute what the bare function does.
#include <algorithm>

#include "jit/capture_fixture.h"

namespace netcl {
namespace {

using test::expect_as_eager;
using test::expect_same_bits;
using test::labels_of;
using test::message_of;
using test::normal;
using test::on_every_device;
using test::Tensors;

TEST(Capture, elementwise_views_casts_fills_and_copies) {
  on_every_device([](const Queue& queue) {
    const auto function = [queue](const Tensors& in) -> Tensors {
      const auto half = in[0].astype(DType::float16).astype(DType::float32);
      const auto turned = in[0].transpose().contiguous();
      const auto narrow = ops::exp(in[0].narrow(1, 1, 3)) + in[0].slice(1, 0, 3);
      const auto target = Tensor::full(queue, {5, 7}, 2.5);
      target.narrow(0, 1, 2).copy_from(in[0].narrow(0, 2, 2));
      const auto zeros = Tensor::from_shape(queue, {7, 5});
      ops::add_(zeros, turned);
      const auto constant = Tensor::from_host(queue, std::vector<float>{1, 2, 3, 4, 5, 6, 7});
      return {half, turned, narrow, target, zeros * 2.0, in[0] + constant, in[0].clone()};
    };
    expect_as_eager(
        function,
        [&](int call) -> Tensors {
          return {normal(queue, {5, 7}, static_cast<unsigned>(call))};
        },
        !queue.is_cpu());
  });
}

TEST(Capture, products_convolutions_reductions_and_losses) {
  on_every_device([](const Queue& queue) {
    const auto w = normal(queue, {4, 3, 3, 3}, 1), v = normal(queue, {4, 6}, 2);
    const auto table = normal(queue, {6, 6}, 3);
    const auto function = [w, v, table](const Tensors& in) -> Tensors {
      const auto y = ops::relu(ops::conv2d(in[0], w, {}, {{1, 1}, {1, 1}}));
      const auto pooled = ops::mean(ops::max_pool2d(y, {2, 2}), {2, 3});
      const auto logits = ops::matmul(pooled, v) + ops::embedding(in[1], table);
      const auto picked = ops::gather(logits, 1, in[1].view({2, 1}));
      return {ops::cross_entropy(logits, in[1]),
              ops::softmax(logits),
              ops::argmax(logits),
              picked,
              ops::var(y, {1}),
              ops::one_hot(in[1], 6)};
    };
    expect_as_eager(
        function,
        [&](int call) -> Tensors {
          return {normal(queue, {2, 3, 8, 8}, static_cast<unsigned>(call)),
                  labels_of(queue, {call % 6, (call * 5 + 2) % 6})};
        },
        !queue.is_cpu());
  });
}

// Arguments that start inside a buffer: at aligned offsets a sub-buffer, at others a copy.
TEST(Capture, kernels_on_the_inside_of_buffers) {
  for (const auto& device : test::opencl_devices()) {
    const auto& queue = device.queue;
    KernelSpec spec{.name = "capture_test_double"};
    spec.params = {"__global float* y", "__global const float* x", "int n"};
    spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] += 2 * x[i];";
    const auto kernel = spec.build(queue).kernel();
    const auto function = [kernel, queue](const Tensors& in) -> Tensors {
      const auto y = Tensor::full(queue, {8192}, 1.0);
      for (const std::int64_t at : {0, 4096, 5, 4101})
        kernel(queue, 64, 16, y.narrow(0, at, 64), in[0].narrow(0, at + 1, 64), 64);
      return {y};
    };
    expect_as_eager(
        function,
        [&](int call) -> Tensors { return {normal(queue, {8192}, static_cast<unsigned>(call))}; },
        true);
  }
}

// A small network trained by hand: every update is applied exactly once per call.
struct Trainer {
  Tensor w, b, momentum;

  explicit Trainer(const Queue& queue)
      : w(normal(queue, {9, 4}, 11)), b(Tensor::from_shape(queue, {4})) {}

  Tensors operator()(const Tensors& in) {
    const auto logits = ops::matmul(in[0], w) + b;
    const auto loss = ops::cross_entropy(logits, in[1]);
    const auto dlogits = (ops::softmax(logits) - ops::one_hot(in[1], 4)) / 8.0;
    const auto dw = ops::matmul(in[0].transpose(), dlogits);
    if (!momentum) momentum = Tensor::from_shape(dw.queue(), dw.shape());  // as optimisers do
    ops::add_(ops::mul_(momentum, 0.9), dw);
    ops::sub_(w, momentum * 0.5);
    ops::sub_(b, ops::sum(dlogits, {0}) * 0.5);
    return {loss, logits};
  }
};

TEST(Capture, twenty_training_steps_end_at_the_same_bits) {
  on_every_device([](const Queue& queue) {
    Trainer eager(queue), captured(queue);
    CapturedStep step([&](const Tensors& in) { return captured(in); });
    for (int i = 0; i < 20; ++i) {
      std::vector<std::int64_t> labels;
      for (int row = 0; row < 8; ++row) labels.push_back((row * 7 + i) % 4);
      const Tensors in = {normal(queue, {8, 9}, 100 + static_cast<unsigned>(i)),
                          labels_of(queue, labels)};
      const auto expected = eager(in), results = step(in);
      expect_same_bits(results[0], expected[0]);
      expect_same_bits(captured.w, eager.w);
      expect_same_bits(captured.b, eager.b);
      expect_same_bits(captured.momentum, eager.momentum);
    }
    EXPECT_EQ(step.stats().replays, queue.is_cpu() ? 0U : 18U);
  });
}

// The same with a tape inside the step: forward, backward and update are one recording.
TEST(Capture, a_tape_inside_the_step) {
  on_every_device([](const Queue& queue) {
    struct Network {
      Tensor w, v;
      explicit Network(const Queue& on) : w(normal(on, {9, 7}, 21)), v(normal(on, {7, 3}, 22)) {
        w.set_requires_grad();
        v.set_requires_grad();
      }
      Tensors operator()(const Tensors& in) {
        Tape tape;
        const auto h = ops::gelu(ops::layer_norm(ops::matmul(in[0], w), {}, {}));
        const auto loss = ops::cross_entropy(ops::matmul(h, v), in[1]);
        for (const auto& p : {w, v}) p.set_grad({});
        tape.backward(loss);
        const no_grad updating;
        for (const auto& p : {w, v}) ops::sub_(p, p.grad() * 0.1);
        return {loss};
      }
    };
    Network eager(queue), captured(queue);
    CapturedStep step([&](const Tensors& in) { return captured(in); });
    for (int i = 0; i < 10; ++i) {
      const Tensors in = {normal(queue, {4, 9}, 300 + static_cast<unsigned>(i)),
                          labels_of(queue, {i % 3, 1, 2, (i + 1) % 3})};
      const auto expected = eager(in), results = step(in);
      EXPECT_FALSE(results[0].requires_grad());
      expect_same_bits(results[0], expected[0]);
      expect_same_bits(captured.w, eager.w);
      expect_same_bits(captured.v, eager.v);
      expect_same_bits(captured.w.grad(), eager.w.grad());
    }
    EXPECT_EQ(step.stats().replays, queue.is_cpu() ? 0U : 8U) << step.why_not();
  });
}

TEST(Capture, a_counter_counts_calls) {
  on_every_device([](const Queue& queue) {
    const auto count = Tensor::from_shape(queue, {1}, DType::int32);
    CapturedStep step([&](const Tensors&) -> Tensors {
      ops::add_(count, 1.0);
      return {};
    });
    const auto devices = test::all_devices();
    const auto mine = std::find_if(devices.begin(), devices.end(),
                                   [&](const auto& device) { return device.queue == queue; });
    const ActiveDevice active(*mine);
    for (int i = 1; i <= 7; ++i) {
      EXPECT_TRUE(step().empty());
      EXPECT_EQ(count.item(), i);
    }
  });
}

TEST(Capture, other_shapes_dtypes_and_views_of_inputs) {
  for (const auto& device : test::opencl_devices()) {
    const auto& queue = device.queue;
    int runs = 0;
    CapturedStep step([&](const Tensors& in) -> Tensors {
      ++runs;
      return {in[0] * 2.0};
    });
    const auto expect_double = [&](const Tensor& x) { expect_same_bits(step({x})[0], x * 2.0); };
    for (int i = 0; i < 3; ++i) expect_double(normal(queue, {3, 4}, static_cast<unsigned>(i)));
    EXPECT_EQ(runs, 2);
    for (int i = 0; i < 3; ++i) expect_double(normal(queue, {4, 3}, static_cast<unsigned>(i)));
    EXPECT_EQ(runs, 4);
    for (int i = 0; i < 3; ++i)
      expect_double(normal(queue, {3, 4}, static_cast<unsigned>(i)).astype(DType::float16));
    EXPECT_EQ(runs, 6);
    // Back to the first: nothing is recorded anew, not even for views.
    expect_double(normal(queue, {4, 3}, 9).transpose());
    expect_double(normal(queue, {6, 8}, 9).slice(0, 0, 6, 2).slice(1, 7, Tensor::kBegin, -2));
    expect_double(normal(queue, {1, 4}, 9).expand({3, 4}));
    EXPECT_EQ(runs, 6);
    EXPECT_EQ(step.stats().kept, 3U);
    // A fourth and a fifth shape drop the one that was not used for longest.
    for (const std::int64_t n : {2, 5})
      for (int i = 0; i < 2; ++i) expect_double(normal(queue, {n}, 1));
    EXPECT_EQ(step.stats().kept, 4U);
    EXPECT_EQ(runs, 10);
    expect_double(normal(queue, {3, 4}, 3));
    EXPECT_EQ(runs, 10);
    expect_double(normal(queue, {4, 3}, 3));  // gone: it starts again
    EXPECT_EQ(runs, 11);
    step.clear();
    EXPECT_EQ(step.stats().kept, 0U);
  }
}

TEST(Capture, another_queue_is_another_capture) {
  for (const auto& device : test::opencl_devices()) {
    const auto second = Queue::create(device.queue.context(), device.queue.device());
    CapturedStep step([](const Tensors& in) -> Tensors { return {in[0] + in[1]}; });
    for (int i = 0; i < 3; ++i)
      for (const auto& queue : {device.queue, second}) {
        const auto x = normal(queue, {33}, static_cast<unsigned>(i));
        expect_same_bits(step({x, x})[0], x * 2.0);
      }
    EXPECT_EQ(step.stats().replays, 2U);
    EXPECT_NE(message_of<DeviceError>([&] {
                step({normal(device.queue, {33}, 1), normal(second, {33}, 1)});
              }).find("one queue"),
              std::string::npos);
  }
}

// A kernel with memory of two queues: the recorded step keeps their order.
TEST(Capture, two_queues_in_one_step) {
  for (const auto& device : test::opencl_devices()) {
    const auto second = Queue::create(device.queue.context(), device.queue.device());
    KernelSpec spec{.name = "capture_test_add"};
    spec.params = {"__global float* y", "__global const float* x", "int n"};
    spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] += x[i];";
    const auto kernel = spec.build(device.queue).kernel();
    const auto total = Tensor::from_shape(second, {64});
    CapturedStep step([&](const Tensors& in) -> Tensors {
      const auto doubled = in[0] * 2.0;
      kernel(second, 64, 16, total, doubled, 64);
      return {doubled};
    });
    for (int i = 1; i <= 6; ++i) {
      step({Tensor::full(device.queue, {64}, 1.0)});
      EXPECT_EQ(total.to_vector<float>(), std::vector<float>(64, 2.0F * static_cast<float>(i)));
    }
    EXPECT_EQ(step.stats().replays, 4U);
  }
}

TEST(Capture, reading_on_the_host_keeps_it_eager) {
  on_every_device([](const Queue& queue) {
    const std::pair<std::function<double(const Tensor&)>, std::string> readers[] = {
        {[](const Tensor& x) { return x.item(); }, "item()"},
        {[](const Tensor& x) { return x.to_host().at(0); }, "to_host()"},
        {[](const Tensor& x) { return double{x.to_vector<float>()[0]}; }, "to_host()"},
        {[](const Tensor& x) { return x.to_string().empty() ? 0.0 : x.item(); }, "to_string()"}};
    for (const auto& [read, name] : readers) {
      int runs = 0;
      CapturedStep step([&, &read = read](const Tensors& in) -> Tensors {
        ++runs;
        const double scale = read(ops::sum(in[0]));
        return {in[0] * scale};
      });
      for (int i = 1; i <= 4; ++i) {
        const auto x = Tensor::full(queue, {3}, i);
        EXPECT_EQ(step({x})[0].to_vector<float>(), std::vector<float>(3, 3.0F * i * i));
      }
      EXPECT_EQ(runs, 4);
      EXPECT_EQ(step.stats().replays, 0U);
      EXPECT_EQ(step.stats().kept, 0U);
      if (!queue.is_cpu()) EXPECT_EQ(step.why_not(), name + " reads values on the host");
    }
  });
}

TEST(Capture, bad_indices_are_errors_of_the_replay_that_has_them) {
  on_every_device([](const Queue& queue) {
    const auto table = normal(queue, {5, 3}, 1);
    const auto updates = Tensor::from_shape(queue, {1}, DType::int32);
    CapturedStep embed([&](const Tensors& in) -> Tensors {
      auto rows = ops::embedding(in[0], table);
      ops::add_(updates, 1.0);
      return {rows};
    });
    CapturedStep loss([&](const Tensors& in) -> Tensors {
      auto value = ops::cross_entropy(in[0], in[1]);
      ops::add_(updates, 1.0);
      return {value};
    });
    const auto logits = normal(queue, {2, 5}, 2);
    for (int i = 0; i < 5; ++i) {
      expect_same_bits(embed({labels_of(queue, {i, 4 - i})})[0],
                       ops::embedding(labels_of(queue, {i, 4 - i}), table));
      expect_same_bits(loss({logits, labels_of(queue, {i, 2})})[0],
                       ops::cross_entropy(logits, labels_of(queue, {i, 2})));
      EXPECT_EQ(updates.item(), 2 * (i + 1));
      if (i < 2) continue;
      const auto bad = labels_of(queue, {i, 1000000007});
      const auto eager = message_of<ArgumentError>([&] { ops::embedding(bad, table); });
      EXPECT_NE(eager.find("1000000007 at position (1)"), std::string::npos) << eager;
      EXPECT_EQ(message_of<ArgumentError>([&] { embed({bad}); }), eager);
      EXPECT_EQ(message_of<ArgumentError>([&] {
                  loss({logits, bad});
                }),
                message_of<ArgumentError>([&] { ops::cross_entropy(logits, bad); }));
      // As eagerly: what comes after the error does not happen.
      EXPECT_EQ(updates.item(), 2 * (i + 1));
    }
    EXPECT_EQ(embed.stats().captures, queue.is_cpu() ? 0U : 1U);
  });
}

TEST(Capture, errors_of_the_function_pass_and_nothing_is_kept) {
  on_every_device([](const Queue& queue) {
    bool fails = false;
    CapturedStep step([&](const Tensors& in) -> Tensors {
      auto y = in[0] + Tensor::from_host(in[0].queue(), std::vector<float>{1, 2, 3});
      if (fails) throw std::runtime_error("no");
      return {y};
    });
    const auto x = Tensor::full(queue, {3}, 1.0);
    fails = true;
    EXPECT_THROW(step({x}), std::runtime_error);
    fails = false;
    step({x});
    fails = true;
    EXPECT_THROW(step({x}), std::runtime_error);  // while it is recorded
    EXPECT_EQ(step.stats().kept, 0U);
    fails = false;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(step({x})[0].to_vector<float>(), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(step.stats().kept, queue.is_cpu() ? 0U : 1U);
  });
}

}  // namespace
}  // namespace netcl
