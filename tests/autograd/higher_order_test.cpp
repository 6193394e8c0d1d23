// Gradients of gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/autograd.h"
#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of, test::on_every_device;
using Inputs = std::vector<Tensor>;
using Floats = std::vector<float>;

Tensor leaf(const Queue& queue, const Floats& values) {
  auto tensor = Tensor::from_host(queue, values);
  tensor.set_requires_grad();
  return tensor;
}

TEST(HigherOrder, second_derivative_of_a_cube) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2, -3});
    Tape tape;
    const auto y = ops::sum(x * x * x);
    const auto first = tape.gradient(y, {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(first.to_vector<float>(), (Floats{3, 12, 27}));
    const auto second = tape.gradient(ops::sum(first), {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(second.to_vector<float>(), (Floats{6, 12, -18}));
    tape.backward(ops::sum(second));
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{6, 6, 6}));
  });
}

TEST(HigherOrder, nested_tapes) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {0.5f, 2});
    Tape outer;
    Tensor slope;
    {
      Tape inner;
      const auto y = ops::exp(x * 2.0);
      slope = inner.gradient(y, {x}, {}, {.create_graph = true})[0];
    }
    outer.backward(ops::sum(slope));
    const auto grad = x.grad().to_vector<float>();
    EXPECT_NEAR(grad[0], 4 * std::exp(1.0), 1e-4);
    EXPECT_NEAR(grad[1], 4 * std::exp(4.0), 1e-3);
  });
}

TEST(HigherOrder, many_ops) {
  on_every_device([](const Queue& queue) {
    const auto random = [&](const Shape& shape, std::uint64_t seed) {
      return Tensor::random(queue, shape, seed, Distribution::normal, DType::float64);
    };
    const auto check = [&](const char* what, const std::function<Tensor(const Inputs&)>& fn,
                           const Inputs& inputs) {
      const auto result = gradcheck([&](const Inputs& in) { return Inputs{fn(in)}; }, inputs,
                                    {.max_elements = 12, .second_order = true});
      EXPECT_TRUE(result) << what << ": " << result.message;
    };
    check("division", [](const Inputs& in) { return in[0] / (in[1] * in[1] + 1.0); },
          {random({2, 3}, 3), random({3}, 4)});
    check("matmul", [](const Inputs& in) { return ops::square(ops::matmul(in[0], in[1])); },
          {random({3, 4}, 5), random({4, 2}, 6)});
    // The others are made of the same kernels, each of which takes a driver long to compile.
    if (!queue.is_cpu()) return;
    check("tanh", [](const Inputs& in) { return ops::tanh(in[0]); }, {random({7}, 1)});
    check("sigmoid", [](const Inputs& in) { return ops::sigmoid(in[0]); }, {random({7}, 1)});
    check("gelu", [](const Inputs& in) { return ops::gelu(in[0]); }, {random({7}, 2)});
    check("silu", [](const Inputs& in) { return ops::silu(in[0]); }, {random({7}, 2)});
    check("linear",
          [](const Inputs& in) { return ops::linear(in[0], in[1], in[2], ops::Activation::tanh); },
          {random({3, 4}, 5), random({2, 4}, 6), random({2}, 7)});
    check("softmax", [](const Inputs& in) { return ops::square(ops::softmax(in[0])); },
          {random({2, 5}, 8)});
    check("log_softmax", [](const Inputs& in) { return ops::square(ops::log_softmax(in[0])); },
          {random({2, 5}, 8)});
    check("conv2d",
          [](const Inputs& in) {
            return ops::square(ops::conv2d(in[0], in[1], {}, {.padding = {1, 1}}));
          },
          {random({1, 2, 4, 4}, 9), random({3, 2, 3, 3}, 10)});
    check("reductions",
          [](const Inputs& in) {
            return ops::mean(ops::square(in[0]), {0}) * ops::logsumexp(in[0], {0});
          },
          {random({4, 3}, 11)});
    check("views",
          [](const Inputs& in) {
            const auto part = in[0].slice(1, 3, Tensor::kEnd, -2);
            return part * part * part;
          },
          {random({2, 5}, 12)});
  });
}

TEST(HigherOrder, an_op_without_a_second_gradient_says_so) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = Tensor::random(queue, {1, 1, 4, 4}, 1);
  x.set_requires_grad();
  Tape tape;
  const auto y = ops::sum(ops::square(ops::max_pool2d(x, {2, 2})));
  const auto first = tape.gradient(y, {x}, {}, {.create_graph = true})[0];
  const auto message = message_of<ArgumentError>([&] { tape.backward(ops::sum(first)); });
  EXPECT_NE(message.find("max_pool2d_backward has no gradient"), message.npos) << message;
}

TEST(Checkpoint, nested_and_differentiated_twice) {
  on_every_device([](const Queue& queue) {
    const auto inner = [](const Inputs& in) { return Inputs{ops::exp(in[0] * 0.3)}; };
    const auto outer = [&](const Inputs& in) {
      return Inputs{checkpoint(inner, {in[0] * in[1]})[0] * in[1]};
    };
    const auto result =
        gradcheck([&](const Inputs& in) { return checkpoint(outer, in); },
                  {Tensor::random(queue, {4}, 1, Distribution::normal, DType::float64),
                   Tensor::random(queue, {4}, 2, Distribution::normal, DType::float64)},
                  {.second_order = true});
    EXPECT_TRUE(result) << result.message;
  });
}

}  // namespace
}  // namespace netcl
