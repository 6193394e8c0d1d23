// apply_op, checkpoint, anomalies, gradcheck.
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

// ---- apply_op

Inputs cube(const Inputs& inputs) {
  return apply_op(
      "cube", [](const Inputs& in) { return Inputs{in[0] * in[0] * in[0]}; },
      [](const ApplyContext& context) {
        return Inputs{context.grads[0] * context.inputs[0] * context.inputs[0] * 3.0};
      },
      inputs);
}

TEST(ApplyOp, forward_and_backward_of_users) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, -2});
    Tape tape;
    const auto y = cube({x})[0];
    EXPECT_EQ(y.to_vector<float>(), (Floats{1, -8}));
    EXPECT_EQ(tape.nodes().size(), 1u) << "what the forward calls is not recorded";
    EXPECT_EQ(Node::of(y).op_name(), "cube");
    tape.backward(ops::sum(y * 2.0));
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{6, 24}));
  });
}

TEST(ApplyOp, is_differentiable_again) {
  on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {5}, 1, Distribution::normal, DType::float64);
    const auto result = gradcheck(cube, {x}, {.second_order = true});
    EXPECT_TRUE(result) << result.message;
  });
}

TEST(ApplyOp, several_inputs_and_outputs) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, 2}), y = leaf(queue, {3, 4});
    Tape tape;
    std::vector<bool> asked;
    const auto out = apply_op(
        "both",
        [](const Inputs& in) {
          return Inputs{in[0] + in[1], in[0] * in[1]};
        },
        [&](const ApplyContext& c) {
          asked = c.wanted;
          EXPECT_TRUE(c.grads[0]);
          EXPECT_FALSE(c.grads[1]) << "it was not used";
          return Inputs{c.grads[0], Tensor()};
        },
        {x, y.detach()});
    tape.backward(ops::sum(out[0]));
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{1, 1}));
    EXPECT_EQ(asked, (std::vector<bool>{true, false}));
  });
}

TEST(ApplyOp, wrong_backwards_are_named) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, 2});
  const auto with = [&](ApplyBackward backward) {
    Tape tape;
    const auto y = apply_op("mine", [](const Inputs& in) { return Inputs{in[0] * 2.0}; },
                            std::move(backward), {x})[0];
    tape.backward(ops::sum(y));
  };
  EXPECT_NE(message_of<ShapeError>([&] {
              with([](const ApplyContext& c) { return Inputs{ops::sum(c.grads[0])}; });
            }).find("input 0 of mine must have its shape (2,): ()"),
            std::string::npos);
  EXPECT_NE(message_of<DtypeError>([&] {
              with([](const ApplyContext& c) { return Inputs{c.grads[0].astype(DType::float64)}; });
            }).find("float32"),
            std::string::npos);
  EXPECT_NE(message_of<ArgumentError>([&] { with(nullptr); }).find("mine has no gradient"),
            std::string::npos);
  EXPECT_NE(message_of<ArgumentError>([&] {
              with([](const ApplyContext& c) { return Inputs(2, c.grads[0]); });
            }).find("one gradient per input: 2 for 1"),
            std::string::npos);
  EXPECT_NE(message_of<ArgumentError>([&] {
              apply_op("none", [](const Inputs&) { return Inputs(); }, nullptr, {x});
            }).find("at least one"),
            std::string::npos);
}

// ---- checkpoint

TEST(Checkpoint, gives_the_same_gradients) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {0.5f, -1, 2}), w = leaf(queue, {1, 2, 3});
    const auto block = [&](const Inputs& in) { return Inputs{ops::tanh(in[0] * w) * in[0]}; };
    Floats expected_x, expected_w;
    {
      Tape tape;
      const auto h = x * 2.0;
      tape.backward(ops::sum(ops::square(block({h})[0]) * h));
      expected_x = x.grad().to_vector<float>();
      expected_w = w.grad().to_vector<float>();
      x.set_grad({});
      w.set_grad({});
    }
    Tape tape;
    const auto h = x * 2.0;
    const auto y = checkpoint(block, {h})[0];
    EXPECT_EQ(Node::of(y).op_name(), "checkpoint");
    EXPECT_EQ(tape.nodes().size(), 2u) << "h and the checkpoint, nothing from inside";
    tape.backward(ops::sum(ops::square(y) * h));
    EXPECT_EQ(x.grad().to_vector<float>(), expected_x);
    EXPECT_EQ(w.grad().to_vector<float>(), expected_w);
  });
}

TEST(Checkpoint, keeps_less_memory) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = Tensor::random(queue, {1 << 16}, 1);
  x.set_requires_grad();
  const auto block = [](const Inputs& in) {
    auto y = in[0];
    for (int i = 0; i < 16; ++i) y = ops::tanh(y);
    return Inputs{y};
  };
  const auto in_use = [&] { return get_persistent_pool(queue)->stats().bytes_in_use; };
  const auto before = in_use();
  std::uint64_t stored = 0, checkpointed = 0;
  {
    Tape tape;
    const auto y = block({x});
    stored = in_use() - before;
  }
  {
    Tape tape;
    const auto y = checkpoint(block, {x});
    checkpointed = in_use() - before;
  }
  EXPECT_GE(stored, 16u * x.nbytes());
  EXPECT_LE(checkpointed, 2u * x.nbytes());
  EXPECT_EQ(in_use(), before);
}

// ---- anomalies

TEST(Anomaly, names_the_op_and_the_element) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {1, -1, 2});
    Tape tape;
    const detect_anomaly on;
    const auto message = message_of<AnomalyError>([&] { ops::exp(ops::log(x)); });
    EXPECT_NE(message.find("log (call #"), message.npos) << message;
    EXPECT_NE(message.find("nan at (1) of shape (3,)"), message.npos) << message;
    EXPECT_NE(message.find("called from"), message.npos) << message;
  });
}

TEST(Anomaly, names_the_backward_and_its_caller) {
  on_every_device([](const Queue& queue) {
    auto x = leaf(queue, {0, 4});
    Tape tape;
    const detect_anomaly on;
    set_caller_description([] { return std::string("train.py:17"); });
    const auto y = ops::sum(ops::sqrt(x));
    set_caller_description(nullptr);
    const auto message = message_of<AnomalyError>([&] { tape.backward(y); });
    EXPECT_NE(message.find("the backward of sqrt"), message.npos) << message;
    EXPECT_NE(message.find("inf at (0)"), message.npos) << message;
    EXPECT_NE(message.find("called from train.py:17"), message.npos) << message;
    EXPECT_FALSE(x.grad());
  });
}

TEST(Anomaly, inputs_that_are_bad_already_are_not_blamed_on_ops) {
  const auto queue = manager().default_device("cpu").queue;
  auto x = leaf(queue, {1, INFINITY});
  Tape tape;
  const detect_anomaly on;
  EXPECT_NO_THROW(ops::sum(x * 2.0));
  {
    const detect_anomaly off(false);
    EXPECT_FALSE(is_anomaly_detected());
  }
  EXPECT_TRUE(is_anomaly_detected());
}

// ---- gradcheck

TEST(Gradcheck, finds_a_wrong_gradient) {
  on_every_device([](const Queue& queue) {
    const auto wrong = [](const Inputs& inputs) {
      return apply_op(
          "wrong", [](const Inputs& in) { return Inputs{in[0] * in[0]}; },
          [](const ApplyContext& c) { return Inputs{c.grads[0] * c.inputs[0]}; }, inputs);
    };
    const auto x = Tensor::from_host(queue, std::vector<double>{1, 2});
    const auto result = gradcheck(wrong, {x});
    EXPECT_FALSE(result);
    EXPECT_GT(result.worst, 1);
    EXPECT_NE(result.message.find("input 0 at (0) must be"), std::string::npos) << result.message;
  });
}

TEST(Gradcheck, float32_inputs_are_checked_in_float64) {
  on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {3, 4}, 3);
    const auto result =
        gradcheck([](const Inputs& in) { return Inputs{ops::exp(in[0]) * in[0]}; }, {x});
    EXPECT_TRUE(result) << result.message;
    EXPECT_LT(result.worst, 0.5);
  });
}

TEST(Gradcheck, needs_something_to_check) {
  const auto queue = manager().default_device("cpu").queue;
  const auto x = Tensor::from_host(queue, std::vector<double>{1, 2});
  EXPECT_FALSE(gradcheck([](const Inputs& in) { return Inputs{in[0].detach() * 1.0}; }, {x}));
}

}  // namespace
}  // namespace netcl
