// A convolutional network, layer by layer, with a loader, an optimiser and a test: small pictures
// of bars, crosses and rings.
//   example_cnn              pictures that are drawn here
//   example_cnn DIRECTORY    MNIST's or CIFAR's files, or folders of images, e.g. data/mnist
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>

#include "netcl/netcl.h"

namespace {

namespace data = netcl::data;
namespace nn = netcl::nn;
namespace ops = netcl::ops;

constexpr std::int64_t kSide = 16;

// What is drawn at (y, x), from the centre of the figure.
bool is_drawn(std::int64_t kind, double y, double x) {
  switch (kind) {
    case 0:
      return std::abs(y) < 1.2 && std::abs(x) < 5;
    case 1:
      return std::abs(x) < 1.2 && std::abs(y) < 5;
    case 2:
      return std::abs(std::abs(x) - std::abs(y)) < 1.2 && std::abs(x) < 4.5;
    default:
      return std::abs(std::hypot(x, y) - 4) < 1.1;
  }
}

std::shared_ptr<data::Dataset> drawn_pictures(std::int64_t count, std::uint64_t seed) {
  netcl::HostArray images({count, kSide, kSide}, netcl::DType::uint8);
  netcl::HostArray labels({count}, netcl::DType::int64);
  auto* pixel = images.values<std::uint8_t>().data();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto kind = i % 4;
    labels.values<std::int64_t>()[static_cast<std::size_t>(i)] = kind;
    data::RandomStream random(seed, 0, static_cast<std::uint64_t>(i));
    const double cy = 6 + 4 * random.uniform(), cx = 6 + 4 * random.uniform();
    for (std::int64_t y = 0; y < kSide; ++y)
      for (std::int64_t x = 0; x < kSide; ++x) {
        const bool on = is_drawn(kind, static_cast<double>(y) - cy, static_cast<double>(x) - cx);
        *pixel++ = static_cast<std::uint8_t>(random.below(90) + (on ? 150 : 0));
      }
  }
  return std::make_shared<data::ArrayDataset>(
      std::move(images), labels, std::vector<std::string>{"bar", "pole", "cross", "ring"});
}

nn::ModulePtr make_network(const netcl::Shape& image, std::int64_t classes) {
  const ops::Conv2dOptions same{.padding = {1, 1}};
  const ops::Pair kernel{3, 3}, window{2, 2};
  return nn::make<nn::Sequential>(std::vector<nn::ModulePtr>{
      nn::make<nn::Conv2d>(image[0], 16, kernel, same), nn::relu(), nn::make<nn::MaxPool2d>(window),
      nn::make<nn::Conv2d>(16, 32, kernel, same), nn::relu(), nn::make<nn::MaxPool2d>(window),
      nn::make<nn::Flatten>(),
      nn::make<nn::Linear>(32 * (image[1] / 4) * (image[2] / 4), classes)});
}

double accuracy(nn::Module& network, std::shared_ptr<data::Dataset> dataset) {
  network.eval();
  const netcl::no_grad off;
  data::Loader loader(dataset, {.batch = 64, .transforms = {data::to_float()}});
  std::int64_t right = 0;
  for (const auto& batch : loader)
    right += static_cast<std::int64_t>(
        ops::sum(ops::eq(ops::argmax(network(batch.images), 1), batch.labels)).item());
  network.train();
  return static_cast<double>(right) / static_cast<double>(dataset->size());
}

int run(int argc, char** argv) {
  const bool own = argc < 2;
  std::shared_ptr<data::Dataset> train = own ? drawn_pictures(512, 1) : data::open_dataset(argv[1]);
  std::shared_ptr<data::Dataset> test =
      own ? drawn_pictures(128, 2) : data::open_dataset(argv[1], data::Split::test);

  nn::manual_seed(0);
  const auto network = make_network(train->sample(0).image.shape(),
                                    static_cast<std::int64_t>(train->classes().size()));
  std::printf("on %s\n%s", netcl::get_active_device().device_name.c_str(),
              network->to_string().c_str());
  netcl::optim::Adam adam(network->parameters(), {.lr = 3e-3});
  data::Loader loader(train, {.batch = 64, .shuffle = true, .transforms = {data::to_float()}});
  for (int epoch = 1; epoch <= (own ? 4 : 1); ++epoch) {
    double loss_sum = 0;
    for (const auto& batch : loader) {
      netcl::Tape tape;
      const auto loss = ops::cross_entropy((*network)(batch.images), batch.labels);
      tape.backward(loss);
      adam.step();
      adam.zero_grad();
      loss_sum += loss.item();
    }
    std::printf("epoch %d: loss %.3f, test accuracy %.1f %%\n", epoch,
                loss_sum / static_cast<double>(loader.batches()), 100 * accuracy(*network, test));
  }
  return accuracy(*network, test) > 0.9 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
