// A classifier for other programs.
#include <nlohmann/json.hpp>

#include "netcl/train.h"
#include "train/scaling.h"

namespace netcl::train {

void save_onnx(const std::string& path, const Classifier& classifier) {
  const auto& image = classifier.image();
  const auto example =
      Tensor::from_shape(classifier.queue(), Shape{1, image[0], image[1], image[2]});
  nn::OnnxOptions options;
  std::tie(options.scale, options.shift) = scale_and_shift(classifier.normalisation());
  const nlohmann::json names = classifier.classes();
  options.metadata = {
      {"classes", names.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)}};
  nn::save_onnx(path, *classifier.model(), example, options);
}

}  // namespace netcl::train
