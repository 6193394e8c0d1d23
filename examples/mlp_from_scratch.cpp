// A network from nothing but tensors and a tape: two spirals told apart by three products, with
// the steps of gradient descent written out.
#include <cmath>
#include <cstdio>
#include <vector>

#include "netcl/netcl.h"

namespace {

using netcl::Tensor;
namespace ops = netcl::ops;

constexpr int kPoints = 200;  // of each spiral

struct Data {
  Tensor points, labels;
};

Data two_spirals() {
  std::vector<float> points;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 2 * kPoints; ++i) {
    const int arm = i % 2;
    const double along = static_cast<double>(i) / (2 * kPoints);
    const double angle = 9 * along + 3.14159265 * arm;
    points.push_back(static_cast<float>(along * std::cos(angle)));
    points.push_back(static_cast<float>(along * std::sin(angle)));
    labels.push_back(arm);
  }
  return {Tensor::from_host({points, netcl::Shape{2 * kPoints, 2}}), Tensor::from_host(labels)};
}

Tensor weight(std::int64_t in, std::int64_t out, std::uint64_t seed) {
  const double scale = std::sqrt(2.0 / static_cast<double>(in));
  auto tensor = Tensor::random({in, out}, seed, netcl::Distribution::normal) * scale;
  return tensor.set_requires_grad();
}

}  // namespace

int main() {
  const auto [points, labels] = two_spirals();
  std::vector<Tensor> weights{weight(2, 32, 1), weight(32, 32, 2), weight(32, 2, 3)};
  std::vector<Tensor> biases;
  for (const auto& w : weights) {
    auto bias = Tensor::from_shape({w.size(1)});
    biases.push_back(bias.set_requires_grad());
  }
  const auto network = netcl::jit([&](Tensor x) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      x = ops::matmul(x, weights[i]) + biases[i];
      if (i + 1 < weights.size()) x = ops::tanh(x);
    }
    return x;
  });

  for (int step = 0; step <= 1000; ++step) {
    netcl::Tape tape;
    const auto loss = ops::cross_entropy(network(points), labels);
    tape.backward(loss, {}, {.retain = false});
    const netcl::no_grad off;
    for (auto* list : {&weights, &biases})
      for (auto& parameter : *list) {
        ops::sub_(parameter, parameter.grad() * 0.5);
        parameter.set_grad({});
      }
    if (step % 200 == 0) std::printf("step %4d  loss %.4f\n", step, loss.item());
  }

  const auto right = ops::eq(ops::argmax(network(points)), labels);
  const double accuracy = ops::mean(right.astype(netcl::DType::float32)).item();
  std::printf("accuracy %.3f\n", accuracy);
  return accuracy > 0.95 ? 0 : 1;
}
