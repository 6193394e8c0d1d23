// What tapes record, what backward gives, and how long things are held.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "netcl/autograd.h"
#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of, test::on_every_device;

Tensor leaf(const Queue& queue, const std::vector<float>& values) {
  auto tensor = Tensor::from_host(queue, values);
  tensor.set_requires_grad();
  return tensor;
}

std::vector<float> grad_of(const Tensor& tensor) { return tensor.grad().to_vector<float>(); }

using Floats = std::vector<float>;

TEST(Tape, gradients_of_a_chain) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2, -3}), y = leaf(queue, {4, 5, 6});
    Tape tape;
    const auto loss = ops::sum(x * x * y - ops::relu(x));
    tape.backward(loss);
    EXPECT_EQ(grad_of(x), (Floats{8 - 1, 20 - 1, -36}));
    EXPECT_EQ(grad_of(y), (Floats{1, 4, 9}));
  });
}

TEST(Tape, a_second_backward_adds_the_same_again) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, -2, 3});
    Tape tape;
    const auto loss = ops::sum(x * x);
    tape.backward(loss);
    EXPECT_EQ(grad_of(x), (Floats{2, -4, 6}));
    tape.backward(loss);
    EXPECT_EQ(grad_of(x), (Floats{4, -8, 12}));
    x.set_grad({});
    tape.backward(loss);
    EXPECT_EQ(grad_of(x), (Floats{2, -4, 6}));
  });
}

TEST(Tape, two_losses_share_a_graph) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {2, 3});
    Tape tape;
    const auto shared = x * x;
    tape.backward(ops::sum(shared));
    tape.backward(ops::sum(shared * 3.0));
    EXPECT_EQ(grad_of(x), (Floats{16, 24}));
  });
}

TEST(Tape, one_value_used_many_times) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2});
    Tape tape;
    auto y = x + x;
    y = y * y + y;
    tape.backward(ops::sum(y));
    EXPECT_EQ(grad_of(x), (Floats{8 * 1 + 2, 8 * 2 + 2}));
  });
}

TEST(Tape, upstream_gradient_and_non_scalar_results) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2, 3});
    Tape tape;
    const auto y = x * x;
    tape.backward(y, Tensor::from_host(queue, Floats{1, 10, 100}));
    EXPECT_EQ(grad_of(x), (Floats{2, 40, 600}));
    x.set_grad({});
    tape.backward(y);  // as of its sum
    EXPECT_EQ(grad_of(x), (Floats{2, 4, 6}));
  });
}

TEST(Tape, unused_inputs_have_no_gradient_and_gradient_gives_zeros) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2}), unused = leaf(queue, {7, 8});
    Tape tape;
    const auto loss = ops::sum(x * 3.0);
    tape.backward(loss);
    EXPECT_FALSE(unused.grad());
    const auto grads = tape.gradient(loss, {unused, x});
    EXPECT_EQ(grads[0].to_vector<float>(), (Floats{0, 0}));
    EXPECT_EQ(grads[1].to_vector<float>(), (Floats{3, 3}));
    EXPECT_EQ(grad_of(x), (Floats{3, 3})) << "gradient() must not change grad()";
  });
}

TEST(Tape, gradient_with_respect_to_values_on_the_way) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2});
    Tape tape;
    const auto y = x * 2.0;
    const auto loss = ops::sum(y * y + x);
    const auto grads = tape.gradient(loss, {y, x});
    EXPECT_EQ(grads[0].to_vector<float>(), (Floats{4, 8}));
    EXPECT_EQ(grads[1].to_vector<float>(), (Floats{9, 17})) << "through y, and directly";
    retain_grad(y);
    tape.backward(loss);
    EXPECT_EQ(grad_of(y), (Floats{4, 8}));
  });
}

TEST(Tape, only_what_requires_gradients_is_recorded) {
  on_every_device([](const Queue& queue) {
    const auto data = Tensor::from_host(queue, Floats{1, 2});
    auto x = leaf(queue, {1, 2});
    Tape tape;
    const auto constant = ops::exp(data * data);
    EXPECT_FALSE(constant.requires_grad());
    EXPECT_TRUE(tape.nodes().empty());
    const auto y = x * constant;
    ASSERT_EQ(tape.nodes().size(), 1u);
    EXPECT_EQ(Node::of(y).op_name(), "mul");
    ASSERT_EQ(Node::of(y).parents().size(), 1u);
    EXPECT_TRUE(Node::of(y).parents()[0].is_leaf());
    EXPECT_FALSE(ops::gt(x, 0.0).requires_grad());
    EXPECT_FALSE(ops::argmax(x).requires_grad());
  });
}

TEST(Tape, nothing_is_recorded_without_a_tape_or_under_no_grad) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1});
    EXPECT_FALSE((x * 2.0).requires_grad());
    Tape tape;
    {
      const no_grad off;
      EXPECT_FALSE(is_grad_enabled());
      EXPECT_FALSE((x * 2.0).requires_grad());
      { const no_grad inner; }
      EXPECT_FALSE(is_grad_enabled());
    }
    EXPECT_TRUE(is_grad_enabled());
    EXPECT_TRUE((x * 2.0).requires_grad());
    set_grad_enabled(false);
    EXPECT_FALSE((x * 2.0).requires_grad());
    set_grad_enabled(true);
    EXPECT_FALSE((x.detach() * 2.0).requires_grad());
  });
}

TEST(Tape, grad_mode_is_of_one_thread) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  const no_grad off;
  std::thread([&] {
    EXPECT_TRUE(is_grad_enabled());
    EXPECT_EQ(Tape::current(), nullptr);
    Tape tape;
    tape.backward(ops::sum(x * x));
  }).join();
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
  EXPECT_FALSE(is_grad_enabled());
}

TEST(Tape, threads_add_to_one_leaf) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < 50; ++step) {
        Tape tape;
        tape.backward(ops::sum(x * 1.0));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(grad_of(x), (Floats{400, 400}));
}

TEST(Tape, nested_tapes) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2});
    Tape outer;
    const auto a = x * 2.0;
    Tensor b;
    {
      Tape inner;
      EXPECT_EQ(Tape::current(), &inner);
      b = a * a;
      inner.backward(ops::sum(b));
      EXPECT_EQ(grad_of(x), (Floats{8, 16}));
    }
    EXPECT_EQ(Tape::current(), &outer);
    x.set_grad({});
    outer.backward(ops::sum(b * 1.0));  // what the inner one saw is still there for the outer
    EXPECT_EQ(grad_of(x), (Floats{8, 16}));
  });
  EXPECT_EQ(Tape::current(), nullptr);
}

TEST(Tape, stop_keeps_what_was_recorded) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {3});
    Tape tape;
    const auto loss = x * x;
    tape.stop();
    EXPECT_FALSE((x * x).requires_grad());
    tape.backward(loss);
    EXPECT_EQ(grad_of(x), (Floats{6}));
    tape.start();
    EXPECT_TRUE((x * x).requires_grad());
  });
}

TEST(Tape, what_is_freed_is_named) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  Tape tape;
  const auto loss = ops::sum(x * x);
  tape.backward(loss, {}, {.retain = false});
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
  const auto message = message_of<ArgumentError>([&] { tape.backward(loss); });
  EXPECT_NE(message.find("under a tape that is still there"), message.npos) << message;
}

TEST(Tape, values_of_a_closed_tape_are_numbers) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  Tensor later;
  {
    Tape gone;
    later = x * x;
  }
  Tape tape;
  EXPECT_NE(message_of<ArgumentError>([&] { tape.backward(later); }).find("still there"),
            std::string::npos);
  const auto constant = later * x;
  tape.backward(ops::sum(constant));
  EXPECT_EQ(grad_of(x), (Floats{1, 4}));
}

TEST(Tape, bad_calls_are_named) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  Tape tape;
  EXPECT_NE(message_of<ArgumentError>([&] { tape.backward(Tensor()); }).find("empty"),
            std::string::npos);
  const auto constant = Tensor::from_host(queue, Floats{1});
  EXPECT_NE(message_of<ArgumentError>([&] { tape.backward(constant); }).find("requires a gradient"),
            std::string::npos);
  const auto y = x * 2.0;
  EXPECT_NE(message_of<ShapeError>([&] { tape.backward(y, constant); }).find("(2,)"),
            std::string::npos);
  EXPECT_NE(message_of<DtypeError>([&] {
              tape.backward(y, Tensor::full(queue, {2}, 1, DType::float64));
            }).find("float32"),
            std::string::npos);
  auto whole = Tensor::from_shape(queue, {2}, DType::int32);
  EXPECT_NE(message_of<DtypeError>([&] { whole.set_requires_grad(); }).find("int32"),
            std::string::npos);
  EXPECT_FALSE(x.grad()) << "a failed backward leaves the gradients alone";
}

TEST(Tape, a_failing_backward_changes_no_gradient) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2}), y = leaf(queue, {1, 2});
  Tape tape;
  const auto bad = apply_op(
      "bad", [](const auto& in) { return std::vector<Tensor>{in[0] * 1.0}; },
      [](const ApplyContext&) -> std::vector<Tensor> { throw std::runtime_error("no"); }, {x})[0];
  EXPECT_THROW(tape.backward(ops::sum(bad + y * 2.0)), std::runtime_error);
  EXPECT_FALSE(x.grad());
  EXPECT_FALSE(y.grad());
}

TEST(Tape, gradients_share_no_memory) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2}), y = leaf(queue, {1, 2});
    const auto seed = Tensor::from_host(queue, Floats{5, 6});
    Tape tape;
    tape.backward(x.reshape({2, 1}).reshape({2}), seed);
    tape.backward(ops::scatter_add(y, 0, Tensor::from_host(queue, std::vector<std::int64_t>{0}),
                                   Tensor::from_host(queue, Floats{0})),
                  seed);
    ops::fill_(x.grad(), 9);
    EXPECT_EQ(grad_of(y), (Floats{5, 6}));
    EXPECT_EQ(seed.to_vector<float>(), (Floats{5, 6}));
  });
}

TEST(Tape, changes_in_place_are_noticed) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2});
    const auto w = Tensor::from_host(queue, Floats{3, 4});
    Tape tape;
    const auto y = ops::sum(x * w);
    ops::add_(w, 1.0);
    const auto message = message_of<ArgumentError>([&] { tape.backward(y); });
    EXPECT_NE(message.find("mul needs its input 1 of shape (2,) as it was"), message.npos)
        << message;
    // Values that no gradient needs may change.
    const auto z = ops::sum(x + w);
    ops::add_(w, 1.0);
    tape.backward(z);
    EXPECT_EQ(grad_of(x), (Floats{1, 1}));
    // What a tape follows may not, where it would lose track.
    EXPECT_NE(message_of<ArgumentError>([&] { ops::add_(x, 1.0); }).find("must not be changed"),
              std::string::npos);
    EXPECT_NE(message_of<ArgumentError>([&] { w.copy_from(x); }).find("its gradient is lost"),
              std::string::npos);
    const no_grad off;
    ops::sub_(x, 1.0);
    EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1}));
  });
}

TEST(Tape, a_user_kernel_that_writes_is_noticed) {
  NETCL_NEED_OPENCL();
  const auto queue = test::opencl_devices()[0].queue;
  const KernelSpec spec{.name = "twice",
                        .src =
                            "__kernel void twice(__global float* x, __global const float* y) {"
                            " x[get_global_id(0)] *= 2.0f + 0.0f * y[0]; }"};
  const auto program = spec.build(queue);
  auto x = leaf(queue, {1, 2});
  const auto w = Tensor::from_host(queue, Floats{3, 4}), v = Tensor::from_host(queue, Floats{5, 6});
  Tape tape;
  const auto loss = ops::sum(x * w * v);
  program.run(queue, {2}, {}, w, v);
  const auto message = message_of<ArgumentError>([&] { tape.backward(loss); });
  EXPECT_NE(message.find("mul needs its input 1"), message.npos) << message;
  EXPECT_NE(message.find("1 times"), message.npos) << message;
}

TEST(Tape, long_chains_need_no_stack) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1});
  Tape tape;
  auto y = x;
  for (int i = 0; i < 100000; ++i) y = y + 1.0;
  tape.backward(y);
  EXPECT_EQ(grad_of(x), (Floats{1}));
}

TEST(Tape, text) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  Tape tape;
  const auto y = ops::exp(x) * x;
  const auto text = tape.to_string();
  EXPECT_NE(text.find("exp(leaf) -> (2,) float32"), text.npos) << text;
  EXPECT_NE(text.find(", leaf) -> (2,) float32"), text.npos) << text;
}

}  // namespace
}  // namespace netcl
