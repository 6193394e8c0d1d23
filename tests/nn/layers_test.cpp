// Every layer: its shape, its gradients in float64, its state.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/autograd.h"
#include "netcl/nn.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of, test::on_every_device;
using Sizes = std::vector<std::int64_t>;

Tensor random(const Queue& queue, const Shape& shape, std::uint64_t seed = 1) {
  return Tensor::random(queue, shape, seed, Distribution::normal, DType::float64);
}

// The weighted sum of a model's output, whose gradients are compared.
double value_of(nn::Module& model, const Tensor& x) {
  const no_grad off;
  const auto state = nn::random_state();
  const auto y = model(x);
  nn::set_random_state(state);  // dropout draws the same again
  return ops::sum(y * random(y.queue(), y.shape(), 99)).item();
}

void compare(nn::Module& model, const Tensor& x, const nn::NamedTensor& one) {
  const auto& name = one.name;
  const auto& tensor = one.tensor;
  ASSERT_TRUE(tensor.grad()) << name;
  const auto grads = tensor.grad().to_vector<double>(), values = tensor.to_vector<double>();
  for (std::size_t probe = 0; probe < std::min<std::size_t>(values.size(), 4); ++probe) {
    const auto i = probe * 7919 % values.size();
    const auto at = [&](double by) {
      auto moved = values;
      moved[i] += by;
      tensor.write(HostView(moved, tensor.shape()));
      return value_of(model, x);
    };
    const double expected = (at(1e-5) - at(-1e-5)) / 2e-5;
    EXPECT_NEAR(grads[i], expected, 1e-6 + 1e-5 * std::fabs(expected)) << name << " at " << i;
  }
  tensor.write(HostView(values, tensor.shape()));
}

// Gradients of all parameters and of the input against central differences.
void check_gradients(nn::Module& model, Tensor x) {
  model.astype(DType::float64);
  const bool differentiable = is_floating(x.dtype());
  if (differentiable) x.set_requires_grad();
  const auto state = nn::random_state();
  {
    Tape tape;
    const auto y = model(x);
    tape.backward(ops::sum(y * random(y.queue(), y.shape(), 99)));
  }
  nn::set_random_state(state);
  auto tensors = model.named_parameters();
  if (differentiable) tensors.push_back({"input", x});
  for (const auto& one : tensors) compare(model, x, one);
}

void check_layer(const Queue& queue, const nn::ModulePtr& model, const Shape& in,
                 const Shape& out) {
  SCOPED_TRACE(model->describe());
  model->to(queue);
  EXPECT_EQ((*model)(random(queue, in).astype(DType::float32)).shape(), out);
  check_gradients(*model, random(queue, in));
  model->eval();
  EXPECT_EQ((*model)(random(queue, in)).shape(), out);
}

TEST(Layers, products) {
  on_every_device([](const Queue& queue) {
    using namespace nn;
    manual_seed(3);
    check_layer(queue, make<Linear>(5, 3), {2, 5}, {2, 3});
    check_layer(queue, make<Linear>(5, 3, false), {2, 4, 5}, {2, 4, 3});
    const ops::Conv2dOptions padded{.padding = {1, 1}}, grouped{.stride = {2, 1}, .groups = 2};
    check_layer(queue, make<Conv2d>(2, 4, ops::Pair{3, 3}, padded), {2, 2, 5, 6}, {2, 4, 5, 6});
    check_layer(queue, make<Conv2d>(4, 4, ops::Pair{3, 2}, grouped, false), {1, 4, 5, 6},
                {1, 4, 2, 5});
    const ops::ConvTranspose2dOptions wide{.stride = {2, 2}};
    check_layer(queue, make<ConvTranspose2d>(3, 2, ops::Pair{3, 3}, wide), {1, 3, 3, 3},
                {1, 2, 7, 7});
  });
}

TEST(Layers, norms_and_pools) {
  on_every_device([](const Queue& queue) {
    using namespace nn;
    manual_seed(3);
    check_layer(queue, make<BatchNorm1d>(3), {5, 3}, {5, 3});
    check_layer(queue, make<BatchNorm1d>(3), {4, 3, 2}, {4, 3, 2});
    check_layer(queue, make<BatchNorm2d>(3), {2, 3, 4, 4}, {2, 3, 4, 4});
    check_layer(queue, make<LayerNorm>(Sizes{6}), {3, 6}, {3, 6});
    check_layer(queue, make<RMSNorm>(6), {3, 6}, {3, 6});
    check_layer(queue, make<GroupNorm>(2, 4), {2, 4, 3, 3}, {2, 4, 3, 3});
    check_layer(queue, make<Dropout>(0.4), {4, 9}, {4, 9});
    check_layer(queue, make<MaxPool2d>(ops::Pair{2, 2}), {1, 2, 4, 6}, {1, 2, 2, 3});
    check_layer(queue, make<AvgPool2d>(ops::Pair{2, 3}), {1, 2, 4, 6}, {1, 2, 2, 2});
    check_layer(queue, make<AdaptiveAvgPool2d>(ops::Pair{1, 1}), {2, 3, 4, 5}, {2, 3, 1, 1});
    check_layer(queue, make<Flatten>(), {2, 3, 4}, {2, 12});
  });
}

TEST(Layers, attention) {
  on_every_device([](const Queue& queue) {
    using namespace nn;
    manual_seed(3);
    check_layer(queue, make<MultiheadAttention>(8, 2), {2, 5, 8}, {2, 5, 8});
    check_layer(queue, make<MultiheadAttention>(8, 2, true), {1, 5, 8}, {1, 5, 8});
    check_layer(queue, make<TransformerBlock>(8, 2), {1, 4, 8}, {1, 4, 8});
  });
}

TEST(Layers, activations) {
  on_every_device([](const Queue& queue) {
    for (const auto* name :
         {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus",
          "mish", "hard_sigmoid", "hard_swish", "softmax", "log_softmax"})
      check_layer(queue, nn::make<nn::Activation>(name), {3, 5}, {3, 5});
  });
  EXPECT_NE(message_of<ArgumentError>([] { nn::Activation("rellu"); }).find("rellu"),
            std::string::npos);
}

TEST(Layers, embedding_and_language_model) {
  on_every_device([](const Queue& queue) {
    nn::manual_seed(1);
    const Sizes values{1, 0, 4, 2, 2, 1};
    const auto indices = Tensor::from_host(queue, HostView(values, Shape{2, 3}));
    nn::Embedding embedding(5, 4);
    embedding.to(queue);
    EXPECT_EQ(embedding(indices).shape(), (Shape{2, 3, 4}));
    check_gradients(embedding, indices);
    nn::GPT model({.vocabulary = 7, .context = 6, .layers = 2, .heads = 2, .width = 8});
    model.to(queue);
    EXPECT_EQ(model(indices).shape(), (Shape{2, 3, 7}));
    check_gradients(model, indices);
    model.astype(DType::float32);
    const auto text = model.generate({1, 2}, 9, 1.0, 5);
    EXPECT_EQ(text.size(), 11u);
    EXPECT_EQ(text, model.generate({1, 2}, 9, 1.0, 5));
    EXPECT_TRUE(model.is_training());
  });
}

TEST(Layers, residual_networks) {
  const auto queue = manager().default_device("cpu").queue;
  nn::manual_seed(2);
  const auto small =
      nn::resnet({.depth = 18, .classes = 10, .channels = 1, .width = 4, .small_images = true});
  check_layer(queue, small, {2, 1, 16, 16}, {2, 10});
  const auto large = nn::resnet({.depth = 50, .classes = 5, .channels = 3, .width = 4});
  large->to(queue);
  EXPECT_EQ((*large)(Tensor::random(queue, {1, 3, 64, 64}, 1)).shape(), (Shape{1, 5}));
  // What the networks of these names have everywhere.
  EXPECT_EQ(nn::resnet18(1000)->parameter_count(), 11689512);
  EXPECT_EQ(nn::resnet50(1000)->parameter_count(), 25557032);
  EXPECT_NE(message_of<ArgumentError>([] { nn::resnet({.depth = 19}); }).find("19"),
            std::string::npos);
}

TEST(BatchNorm, running_statistics) {
  on_every_device([](const Queue& queue) {
    nn::BatchNorm2d norm(1, 1e-5, 0.25);
    norm.to(queue);
    const std::vector<float> values{1, 2, 3, 6};
    const auto x = Tensor::from_host(queue, HostView(values, Shape{1, 1, 2, 2}));
    norm(x);
    EXPECT_NEAR(norm.running_mean.item(), 0.25 * 3, 1e-6);
    EXPECT_NEAR(norm.running_var.item(), 0.75 + 0.25 * 14.0 / 3, 1e-5) << "the unbiased variance";
    norm.eval();
    const auto y = norm(x).to_vector<float>();
    EXPECT_NEAR(y[0], (1 - 0.75) / std::sqrt(0.75 + 0.25 * 14.0 / 3 + 1e-5), 1e-5);
    norm.train();
    EXPECT_NE(message_of<ShapeError>([&] {
                norm(Tensor::from_shape(queue, {1, 1, 1, 1}));
              }).find("more than one"),
              std::string::npos);
    EXPECT_NE(message_of<ShapeError>([&] {
                norm(Tensor::from_shape(queue, {1, 2, 1, 1}));
              }).find("(N, 1, H, W)"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace netcl
