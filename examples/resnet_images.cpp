// ResNet-18 on a folder of images, with augmentation, a schedule and a file of weights.
//   example_resnet_images             a folder of coloured pictures that is made here, and a narrow
//                                     network, to be quick
//   example_resnet_images DIRECTORY   DIRECTORY/train and DIRECTORY/test with a folder per class
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "netcl/netcl.h"

namespace {

namespace data = netcl::data;
namespace fs = std::filesystem;
namespace nn = netcl::nn;
namespace ops = netcl::ops;

constexpr std::int64_t kSide = 32;
constexpr const char* kClasses[] = {"checks", "stripes", "waves"};

bool is_bright(std::size_t kind, std::int64_t y, std::int64_t x, std::int64_t shift) {
  if (kind == 0) return ((y + shift) / 4 + (x + shift) / 4) % 2 == 0;
  if (kind == 1) return (x + shift) / 4 % 2 == 0;
  return (y + shift + (x / 8 % 2 == 0 ? x % 8 : 8 - x % 8)) / 4 % 2 == 0;
}

void draw(const std::string& path, std::size_t kind, std::uint64_t number) {
  data::RandomStream random(9, kind, number);
  const auto shift = static_cast<std::int64_t>(random.below(8));
  const std::uint32_t colour[] = {random.below(120), random.below(120), random.below(120)};
  netcl::HostArray image({kSide, kSide, 3}, netcl::DType::uint8);
  auto* pixel = image.values<std::uint8_t>().data();
  for (std::int64_t y = 0; y < kSide; ++y)
    for (std::int64_t x = 0; x < kSide; ++x)
      for (const auto part : colour)
        *pixel++ = static_cast<std::uint8_t>(part + random.below(40) +
                                             (is_bright(kind, y, x, shift) ? 90 : 0));
  netcl::io::save_png(path, image);
}

// A directory that goes when the example ends.
struct MadeFolder {
  fs::path path = fs::temp_directory_path() / ("netcl-pictures-" + std::to_string(::getpid()));
  ~MadeFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void fill() const {
    for (const auto& [split, count] : {std::pair{"train", 32}, std::pair{"test", 8}})
      for (std::size_t kind = 0; kind < std::size(kClasses); ++kind) {
        const auto folder = path / split / kClasses[kind];
        fs::create_directories(folder);
        for (int i = 0; i < count; ++i)
          draw(folder / (std::to_string(i) + ".png"), kind,
               static_cast<std::uint64_t>(i + (count == 8 ? 1000 : 0)));
      }
  }
};

double accuracy(nn::Module& network, const data::ImageFolder& folder,
                const std::vector<data::Transform>& transforms) {
  network.eval();
  const netcl::no_grad off;
  data::Loader loader(std::make_shared<data::ImageFolder>(folder),
                      {.batch = 24, .transforms = transforms});
  std::int64_t right = 0;
  for (const auto& batch : loader)
    right += static_cast<std::int64_t>(
        ops::sum(ops::eq(ops::argmax(network(batch.images), 1), batch.labels)).item());
  network.train();
  return static_cast<double>(right) / static_cast<double>(folder.size());
}

int run(int argc, char** argv) {
  const bool own = argc < 2;
  const MadeFolder made;
  if (own) made.fill();
  const fs::path root = own ? made.path : fs::path(argv[1]);
  const data::ImageFolder::Options size{.height = kSide, .width = kSide};
  const auto train = std::make_shared<data::ImageFolder>((root / "train").string(), size);
  const data::ImageFolder test((root / "test").string(), size);

  const std::vector<data::Transform> plain{data::to_float(),
                                           data::normalise({0.5, 0.5, 0.5}, {0.25, 0.25, 0.25})};
  auto augmented = plain;
  augmented.push_back(data::random_horizontal_flip());
  augmented.push_back(data::random_crop(kSide, kSide, 2));

  nn::manual_seed(0);
  const auto network = nn::resnet({.depth = 18,
                                   .classes = static_cast<std::int64_t>(train->classes().size()),
                                   .width = own ? 8 : 64,
                                   .small_images = true});
  std::printf(
      "on %s: %lld parameters, %lld images\n", netcl::get_active_device().device_name.c_str(),
      static_cast<long long>(network->parameter_count()), static_cast<long long>(train->size()));
  data::Loader loader(
      train, {.batch = own ? 16 : 64, .shuffle = true, .drop_last = true, .transforms = augmented});
  const int epochs = own ? 4 : 10;
  const auto sgd = std::make_shared<netcl::optim::SGD>(
      network->parameters(),
      netcl::optim::SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4});
  netcl::optim::CosineSchedule schedule(sgd, epochs * loader.batches(), loader.batches() / 2);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double loss_sum = 0;
    for (const auto& batch : loader) {
      netcl::Tape tape;
      const auto loss = ops::cross_entropy((*network)(batch.images), batch.labels);
      tape.backward(loss);
      sgd->step();
      sgd->zero_grad();
      schedule.step();
      loss_sum += loss.item();
    }
    std::printf("epoch %d: loss %.3f\n", epoch, loss_sum / static_cast<double>(loader.batches()));
  }
  const auto result = accuracy(*network, test, plain);
  std::printf("test accuracy %.1f %%\n", 100 * result);
  if (own) return result > 0.6 ? 0 : 1;  // by chance it would be a third

  netcl::io::TensorMap weights;
  for (const auto& [name, tensor] : network->state_dict()) weights.emplace(name, tensor);
  netcl::io::save_safetensors("resnet18.safetensors", weights);
  std::printf("weights in resnet18.safetensors\n");
  return 0;
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
