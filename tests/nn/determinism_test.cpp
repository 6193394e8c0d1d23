// Same seed, same device, same bits: of a training, and of an inference however often it was called
// before.
#include <gtest/gtest.h>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

constexpr std::int64_t kClasses = 3;

using Values = std::vector<std::vector<float>>;

// Convolutions for several kernels, norm, pooling, dropout.
nn::ModulePtr make_model(const Queue& queue) {
  nn::manual_seed(11);
  const ops::Conv2dOptions same{.padding = {1, 1}};
  auto model = nn::make<nn::Sequential>();
  model->append(nn::make<nn::Conv2d>(3, 16, ops::Pair{3, 3}, same));
  model->append(nn::make<nn::BatchNorm2d>(16));
  model->append(nn::relu());
  model->append(nn::make<nn::Conv2d>(16, 16, ops::Pair{3, 3}, same));
  model->append(nn::make<nn::BatchNorm2d>(16));
  model->append(nn::relu());
  model->append(nn::make<nn::MaxPool2d>(ops::Pair{2, 2}));
  model->append(nn::make<nn::Conv2d>(16, 8, ops::Pair{1, 1}));
  model->append(nn::make<nn::Flatten>());
  model->append(nn::make<nn::Dropout>(0.2));
  model->append(nn::make<nn::Linear>(8 * 6 * 6, kClasses));
  model->to(queue);
  return model;
}

Tensor images(const Queue& queue, std::uint64_t seed) {
  return Tensor::random(queue, {5, 3, 12, 12}, seed, Distribution::normal);
}

// The losses, then what was learned.
Values trained(const nn::ModulePtr& model, const Queue& queue) {
  optim::Adam adam(model->parameters(), {.lr = 1e-2});
  const auto labels = Tensor::from_host(queue, std::vector<std::int64_t>{0, 1, 2, 1, 0});
  Values values(1);
  for (std::uint64_t step = 0; step < 5; ++step) {
    Tape tape;
    const auto loss = ops::cross_entropy((*model)(images(queue, step)), labels);
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
    values[0].push_back(static_cast<float>(loss.item()));
  }
  for (const auto& one : model->state_dict())
    if (one.tensor.dtype() == DType::float32)
      values.push_back(one.tensor.detach().to_vector<float>());
  return values;
}

TEST(Determinism, a_training_from_the_same_seed_has_the_same_bits) {
  test::on_every_device([](const Queue& queue) {
    const auto first = trained(make_model(queue), queue);
    EXPECT_GT(first.size(), 10u);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(trained(make_model(queue), queue), first);
  });
}

TEST(Determinism, every_call_of_an_inference_has_the_same_bits) {
  test::on_every_device([](const Queue& queue) {
    const auto model = make_model(queue);
    trained(model, queue);
    model->eval();
    const no_grad off;
    const auto x = images(queue, 99);
    const auto first = (*model)(x).to_vector<float>();
    for (int call = 0; call < 4; ++call) EXPECT_EQ((*model)(x).to_vector<float>(), first);
    EXPECT_EQ((*model)(x.clone()).to_vector<float>(), first);
    CapturedStep step([&](const std::vector<Tensor>& in) {
      const no_grad inside;
      return std::vector<Tensor>{(*model)(in[0])};
    });
    for (int call = 0; call < 4; ++call) EXPECT_EQ(step({x})[0].to_vector<float>(), first);
  });
}

}  // namespace
}  // namespace netcl
