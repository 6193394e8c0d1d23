// The models that have a name.
#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "io/with_path.h"
#include "netcl/train.h"
#include "nn/eval_scope.h"
#include "ops/shapes_only.h"
#include "train/probe.h"

namespace netcl::train {
namespace {

constexpr std::size_t kMaxModelFile = std::size_t{16} << 20;
constexpr std::int64_t kHidden = 256;     // of mlp
constexpr std::int64_t kSmallImage = 64;  // below it, resnet18 keeps its resolution at the start

nn::ModulePtr mlp(const Shape& image, std::int64_t classes) {
  auto net = nn::make<nn::Sequential>();
  net->append(nn::make<nn::Flatten>());
  net->append(nn::make<nn::Linear>(image.numel(), kHidden));
  net->append(nn::relu());
  net->append(nn::make<nn::Linear>(kHidden, classes));
  return net;
}

nn::ModulePtr cnn(const Shape& image, std::int64_t classes) {
  check<ArgumentError>(image[1] >= 4 && image[2] >= 4,
                       "[make_model] cnn needs images of 4 x 4 at least: {} x {}", image[1],
                       image[2]);
  constexpr std::int64_t kFirst = 16, kSecond = 32;
  const ops::Pair kernel{3, 3}, window{2, 2};
  const ops::Conv2dOptions same{.padding = {1, 1}};
  auto net = nn::make<nn::Sequential>();
  net->append(nn::make<nn::Conv2d>(image[0], kFirst, kernel, same));
  net->append(nn::relu());
  net->append(nn::make<nn::MaxPool2d>(window));
  net->append(nn::make<nn::Conv2d>(kFirst, kSecond, kernel, same));
  net->append(nn::relu());
  net->append(nn::make<nn::MaxPool2d>(window));
  net->append(nn::make<nn::Flatten>());
  net->append(nn::make<nn::Linear>(kSecond * (image[1] / 4) * (image[2] / 4), classes));
  return net;
}

nn::ModulePtr from_file(const std::string& path) {
  const auto bytes = read_file(path, kMaxModelFile);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return io_detail::with_path<FormatError>(path, "make_model", [&] { return nn::from_json(text); });
}

nn::ModulePtr by_name(const std::string& name, const Shape& image, std::int64_t classes) {
  if (name == "mlp") return mlp(image, classes);
  if (name == "cnn") return cnn(image, classes);
  if (name == "resnet18")
    return nn::resnet18(classes, image[0], std::min(image[1], image[2]) < kSmallImage);
  check<ArgumentError>(name.ends_with(".json"),
                       "[make_model] the model must be mlp, cnn, resnet18 or a file *.json: {}",
                       name);
  return from_file(name);
}

}  // namespace

Shape probe_model(nn::Module& model, const Shape& image) {
  const nn::EvalScope asked(model);
  const ShapesOnly nothing_computed;  // no kernel is compiled for one image
  return model.forward(Tensor::empty({1, image[0], image[1], image[2]})).shape();
}

nn::ModulePtr make_model(const std::string& name, std::int64_t channels, std::int64_t height,
                         std::int64_t width, std::int64_t classes) {
  check<ArgumentError>(channels > 0 && height > 0 && width > 0 && classes > 0,
                       "[make_model] channels, height, width and classes must be positive: {}, {}, "
                       "{}, {}",
                       channels, height, width, classes);
  const Shape image{channels, height, width};
  auto model = by_name(name, image, classes);
  Shape result;
  try {
    result = probe_model(*model, image);
  } catch (const ArgumentError& error) {
    fail<ArgumentError>("[make_model] {} must take images {}: {}", name, image.to_string(),
                        error.what());
  }
  check<ArgumentError>(result == Shape{1, classes},
                       "[make_model] {} must give (N, {}) for images {}: {} for one", name, classes,
                       image.to_string(), result.to_string());
  return model;
}

}  // namespace netcl::train
