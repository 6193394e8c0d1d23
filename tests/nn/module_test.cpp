// Names, state, modes, files of models.
#include <gtest/gtest.h>

#include "netcl/autograd.h"
#include "netcl/autotuner.h"
#include "netcl/nn.h"
#include "netcl/optim.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/mutator.h"

namespace netcl {
namespace {

using test::message_of, test::on_every_device;

nn::ModulePtr small_model() {
  using namespace nn;
  const ops::Conv2dOptions padded{.padding = {1, 1}};
  return make<Sequential>(std::vector<ModulePtr>{
      make<Conv2d>(1, 4, ops::Pair{3, 3}, padded), make<BatchNorm2d>(4), relu(),
      make<MaxPool2d>(ops::Pair{2, 2}), make<Flatten>(), make<Linear>(4 * 16, 10)});
}

TEST(Module, names_and_state) {
  nn::manual_seed(1);
  const auto a = small_model(), b = small_model();
  std::vector<std::string> names;
  for (const auto& one : a->state_dict()) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "5.weight",
                                             "5.bias", "1.running_mean", "1.running_var"}));
  const auto x = Tensor::random({2, 1, 8, 8}, 1);
  a->eval();
  b->eval();
  EXPECT_NE((*a)(x).to_vector<float>(), (*b)(x).to_vector<float>());
  b->load_state_dict(a->state_dict());
  EXPECT_EQ((*a)(x).to_vector<float>(), (*b)(x).to_vector<float>());
}

class Changing : public nn::Module {
 public:
  Changing() {
    add_parameter("w", w);
    add_buffer("b", b);
    add_module("child", nn::make<nn::Linear>(2, 2));
  }
  std::string type() const override { return "Changing"; }
  Tensor forward(const Tensor& x) override { return x; }
  using nn::Module::forget;
  Tensor w = Tensor::full({2}, 1), b = Tensor::full({2}, 2);
};

TEST(Module, what_is_forgotten_is_no_longer_state) {
  Changing module;
  EXPECT_EQ(module.state_dict().size(), 4u);
  EXPECT_TRUE(module.forget("child"));
  EXPECT_FALSE(module.forget("child"));
  EXPECT_TRUE(module.forget("w"));
  EXPECT_TRUE(module.forget("b"));
  EXPECT_TRUE(module.state_dict().empty());
}

TEST(Module, states_that_do_not_fit_are_named) {
  const auto a = small_model(), b = small_model();
  auto state = a->state_dict();
  state.pop_back();
  EXPECT_NE(message_of<ArgumentError>([&] {
              b->load_state_dict(state);
            }).find("'1.running_var' is missing"),
            std::string::npos);
  b->load_state_dict(state, false);
  state[0].tensor = Tensor::from_shape({1});
  EXPECT_NE(message_of<ShapeError>([&] {
              b->load_state_dict(state, false);
            }).find("'0.weight' must have the shape"),
            std::string::npos);
  state.push_back({"other", Tensor::from_shape({1})});
  EXPECT_THROW(b->load_state_dict(state), ArgumentError);
}

TEST(Module, moves_between_devices) {
  on_every_device([&](const Queue& queue) {
    nn::manual_seed(5);
    const auto model = small_model();
    const auto before = model->parameters()[0].to_vector<float>();
    model->to(queue);
    for (const auto& one : model->state_dict()) EXPECT_TRUE(one.tensor.queue() == queue);
    EXPECT_TRUE(model->parameters()[0].requires_grad());
    EXPECT_EQ(model->parameters()[0].to_vector<float>(), before);
    EXPECT_EQ((*model)(Tensor::random(queue, {2, 1, 8, 8}, 1)).shape(), (Shape{2, 10}));
  });
}

TEST(Module, shared_tensors_are_trained_once_and_stay_shared) {
  on_every_device([](const Queue& queue) {
    const auto table = nn::make<nn::Embedding>(5, 3);
    const auto head = nn::make<nn::Linear>(3, 5, false);
    head->weight = table->weight;
    nn::Sequential model({table, head, head});
    EXPECT_EQ(model.state_dict().size(), 3U);
    ASSERT_EQ(model.named_parameters().size(), 1U);
    EXPECT_EQ(model.named_parameters()[0].name, "0.weight");
    EXPECT_EQ(model.parameter_count(), 15);
    model.to(queue).astype(DType::float64);
    EXPECT_TRUE(head->weight.shares_storage(table->weight));
    Tape tape;
    tape.backward(ops::sum(head->weight * 2.0));
    EXPECT_EQ(table->weight.grad().to_vector<double>()[0], 2);
    optim::EMA average(model, 0.5);
    average.update(model);
  });
}

TEST(Module, parameters_are_frozen_by_any_handle) {
  on_every_device([](const Queue& queue) {
    const auto model = nn::make<nn::Linear>(2, 2);
    model->to(queue);
    const auto x = Tensor::random(queue, {3, 2}, 1);
    const auto backward = [&] {
      Tape tape;
      tape.backward(ops::sum((*model)(x)));
    };
    backward();
    for (auto tensor : model->parameters()) tensor.set_requires_grad(false);
    EXPECT_FALSE(Node::of(model->weight));
    EXPECT_FALSE(model->weight.grad());
    EXPECT_FALSE((*model)(x).requires_grad());
    model->parameters()[0].set_requires_grad();
    const auto bias = model->bias.to_vector<float>();
    optim::SGD sgd(model->parameters(), {.lr = 1});
    backward();
    sgd.step();
    EXPECT_TRUE(model->weight.grad());
    EXPECT_FALSE(model->bias.grad());
    EXPECT_EQ(model->bias.to_vector<float>(), bias);
    model->astype(DType::float64);
    EXPECT_FALSE(Node::of(model->bias));
    EXPECT_EQ(model->named_parameters().size(), 2U);
  });
}

TEST(Module, errors_name_the_layer) {
  const auto model = small_model();
  const auto message = message_of<ShapeError>([&] { (*model)(Tensor::from_shape({2, 1, 6, 6})); });
  EXPECT_NE(message.find("in layer 5, Linear(in=64, out=10, bias=true), given (2, 36)"),
            message.npos)
      << message;
}

TEST(Module, modes_and_gradients) {
  const auto model = small_model();
  EXPECT_TRUE(model->children()[1].second->is_training());
  model->eval();
  EXPECT_FALSE(model->children()[1].second->is_training());
  EXPECT_EQ(model->parameter_count(), 36 + 4 + 4 + 4 + 640 + 10);
  Tape tape;
  tape.backward(ops::sum((*model)(Tensor::random({2, 1, 8, 8}, 1))));
  EXPECT_TRUE(model->parameters()[0].grad());
  model->zero_grad();
  EXPECT_FALSE(model->parameters()[0].grad());
  model->set_requires_grad(false);
  EXPECT_FALSE((*model)(Tensor::random({2, 1, 8, 8}, 1)).requires_grad());
  const auto text = model->to_string();
  EXPECT_NE(text.find("  0: Conv2d(in=1, out=4, kernel=[3, 3]"), text.npos) << text;
}

TEST(Module, dropout_follows_the_seed) {
  nn::Dropout dropout(0.5);
  const auto x = Tensor::full({100}, 1);
  nn::manual_seed(9);
  const auto first = dropout(x).to_vector<float>(), second = dropout(x).to_vector<float>();
  EXPECT_NE(first, second);
  nn::manual_seed(9);
  EXPECT_EQ(dropout(x).to_vector<float>(), first);
  const auto state = nn::random_state();
  EXPECT_EQ(dropout(x).to_vector<float>(), second);
  nn::set_random_state(state);
  EXPECT_EQ(dropout(x).to_vector<float>(), second);
}

TEST(ModelFile, round_trip) {
  const auto model = small_model();
  const auto text = nn::to_json(*model);
  const auto again = nn::from_json(text);
  EXPECT_EQ(nn::to_json(*again), text);
  again->load_state_dict(model->state_dict());
  const auto net = nn::resnet({.depth = 18, .classes = 3, .width = 4});
  EXPECT_EQ(nn::to_json(*nn::from_json(nn::to_json(*net))), nn::to_json(*net));
}

TEST(ModelFile, mistakes_are_named) {
  const auto expect = [](const char* text, const char* part) {
    const auto message = message_of<FormatError>([&] { nn::from_json(text); });
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  expect("{", "must be JSON");
  expect("[]", "\"type\"");
  expect(R"({"type": "Liner"})", "'Liner'");
  expect(R"({"type": "Linear", "in": 3})", "'out' is missing");
  expect(R"({"type": "Linear", "in": 3, "out": -1})", "-1");
  expect(R"({"type": "Linear", "in": 3, "out": 1, "bais": true})", "'bais'");
  expect(R"({"type": "Linear", "in": 0, "out": 1})", "in must be positive");
  expect(R"({"type": "Sequential", "layers": [{"type": "Flatten"}, {"type": "Dropout", "p": 2}]})",
         "layer 1 (Dropout): [Dropout] p must be");
  expect(R"({"type": "Conv2d", "in": 1, "out": 1, "kernel": [1, 2, 3]})", "a number or two");
}

// Writing such a value into a message would overflow the stack.
TEST(ModelFile, deep_nesting_is_refused) {
  constexpr std::size_t kDeep = 1'000'000;
  const auto nested = std::string(kDeep, '[') + std::string(kDeep, ']');
  for (const auto* before : {R"({"type": "Linear", "out": 3, "in": )",
                             R"({"type": "Dropout", "p": )", R"({"type": "Flatten", "x": )"}) {
    const auto text = std::string(before) + nested + "}";
    const auto message = message_of<FormatError>([&] { nn::from_json(text); });
    EXPECT_NE(message.find("nested"), message.npos) << message.substr(0, 200);
  }
}

// Whether a number has so many digits that a model of this size would be a matter of memory.
bool has_large_number(const std::string& text) {
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits == 5) return true;
  }
  return false;
}

TEST(ModelFile, damaged_ones_are_read_or_refused) {
  nn::GPT::Options small;
  small.vocabulary = 9, small.context = 4, small.layers = 1, small.heads = 1, small.width = 4;
  const std::string texts[] = {nn::to_json(*small_model()), nn::to_json(*nn::make<nn::GPT>(small)),
                               nn::to_json(*nn::resnet({.depth = 18, .classes = 3, .width = 2}))};
  test::Mutator mutate(11);
  int read = 0, refused = 0;
  for (int i = 0; i < 900; ++i) {
    const auto text = mutate(texts[i % 3]);
    if (has_large_number(text)) continue;
    try {
      (void)nn::from_json(text);
      ++read;
    } catch (const FormatError&) {
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "mutation " << i << ": " << error.what();
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 5);
}

TEST(Module, lists_the_kernels_it_launches) {
  on_every_device([&](const Queue& queue) {
    const auto model = small_model();
    model->to(queue);
    model->train();
    const auto mean = model->named_buffers()[0].tensor.to_vector<float>();
    const auto x = Tensor::random(queue, {2, 1, 8, 8}, 1);
    EXPECT_THROW(model->kernels(), ArgumentError) << "it was never called";
    const auto launches = model->kernels(x);
    EXPECT_TRUE(model->is_training());
    EXPECT_EQ(model->named_buffers()[0].tensor.to_vector<float>(), mean);
    if (queue.is_cpu()) {
      EXPECT_TRUE(launches.empty());
      return;
    }
    ASSERT_GE(launches.size(), 4u);  // convolution, norm, pooling, product at least
    Autotuner tuner(queue);
    std::size_t added = 0;
    for (const auto& one : launches) {
      EXPECT_EQ(one.name, one.kernel.name());
      EXPECT_GT(one.global_size.total(), 0u);
      EXPECT_EQ(one.arguments.size(), one.kernel.parameters().size());
      if (!one.is_free || added == 2) continue;
      tuner.add(one.name, one.kernel, one.global_size, one.arguments);
      ++added;
    }
    ASSERT_GT(added, 0u);
    model->eval();
    const auto before = (*model)(x).to_vector<float>();
    EXPECT_GT(tuner.tune_all(queue, {.show_progress = false}), 0u);
    EXPECT_FALSE(tuner.results().empty());
    EXPECT_EQ((*model)(x).to_vector<float>(), before);
    // As it was called; forms of its weights are kept by now.
    EXPECT_GE(model->kernels().size(), 3u);
    EXPECT_LE(model->kernels().size(), launches.size());
  });
}

}  // namespace
}  // namespace netcl
