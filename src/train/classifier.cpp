// The network with its input and its answers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "data/planes.h"
#include "netcl/runtime.h"
#include "netcl/train.h"
#include "nn/eval_scope.h"
#include "train/classes.h"
#include "train/scaling.h"

namespace netcl::train {
namespace {

constexpr float kLargest = 255;

Tensor per_channel(const std::vector<float>& values) {
  return Tensor::from_host(
      HostView(values, Shape{1, static_cast<std::int64_t>(values.size()), 1, 1}));
}

Tensor joined(const Classifier& classifier, const std::vector<HostArray>& images) {
  const auto& one = classifier.image();
  HostArray all(Shape{static_cast<std::int64_t>(images.size()), one[0], one[1], one[2]},
                DType::uint8);
  auto* to = static_cast<std::byte*>(all.data());
  for (const auto& image : images) {
    check<DtypeError>(image.data() != nullptr && image.dtype() == DType::uint8,
                      "[predict] images must be uint8: {}", name_of(image.dtype()));
    check<ShapeError>(image.shape() == one, "[predict] the model wants images {}: {}",
                      one.to_string(), image.shape().to_string());
    std::memcpy(to, image.data(), image.nbytes());
    to += image.nbytes();
  }
  return Tensor::from_host(classifier.queue(), all);
}

}  // namespace

Normalisation measure_normalisation(const data::Dataset& dataset, std::int64_t most) {
  const auto count = std::min(dataset.size(), most);
  check<ArgumentError>(count > 0, "[normalisation] there must be a sample: {}", count);
  std::vector<double> sums, squares;
  double pixels = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto image = dataset.sample(i * dataset.size() / count).image;
    check<DtypeError>(image.dtype() == DType::uint8 && image.shape().rank() == 3,
                      "[normalisation] images must be uint8 (channels, height, width): {} {}",
                      name_of(image.dtype()), image.shape().to_string());
    const auto channels = static_cast<std::size_t>(image.shape()[0]);
    if (i == 0) sums.resize(channels), squares.resize(channels);
    check<ShapeError>(channels == sums.size(),
                      "[normalisation] images must have {} channels: {} has {}", sums.size(),
                      dataset.describe(i * dataset.size() / count), channels);
    const auto values = image.values<std::uint8_t>();
    const auto plane = values.size() / std::max<std::size_t>(channels, 1);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double value = values[k] / static_cast<double>(kLargest);
      sums[k / plane] += value;
      squares[k / plane] += value * value;
    }
    pixels += static_cast<double>(plane);
  }
  Normalisation result;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double mean = sums[c] / pixels;
    const double deviation = std::sqrt(std::max(squares[c] / pixels - mean * mean, 0.0));
    result.mean.push_back(static_cast<float>(mean));
    // A channel that is the same everywhere stays as it is.
    result.deviation.push_back(deviation > 1e-4 ? static_cast<float>(deviation) : 1.0f);
  }
  return result;
}

std::pair<std::vector<float>, std::vector<float>> scale_and_shift(const Normalisation& given) {
  std::vector<float> scale, shift;
  for (std::size_t c = 0; c < given.mean.size(); ++c) {
    scale.push_back(1 / (kLargest * given.deviation[c]));
    shift.push_back(-given.mean[c] / given.deviation[c]);
  }
  return {scale, shift};
}

Classifier::Classifier(nn::ModulePtr model, std::vector<std::string> classes, const Shape& image,
                       Normalisation normalisation)
    : model_(std::move(model)),
      classes_(std::move(classes)),
      image_(image),
      normalisation_(std::move(normalisation)) {
  check<ArgumentError>(model_ != nullptr && !classes_.empty(),
                       "[Classifier] there must be a model and at least one class");
  check<ShapeError>(image.rank() == 3,
                    "[Classifier] the image must be (channels, height, width): {}",
                    image.to_string());
  const auto& [mean, deviation] = normalisation_;
  check<ArgumentError>(
      static_cast<std::int64_t>(mean.size()) == image[0] && mean.size() == deviation.size(),
      "[Classifier] a mean and a deviation per channel are needed: {} and {} for "
      "{} channels",
      mean.size(), deviation.size(), image[0]);
  for (std::size_t c = 0; c < mean.size(); ++c)
    check<ArgumentError>(std::isfinite(mean[c]) && std::isfinite(deviation[c]) && deviation[c] > 0,
                         "[Classifier] means must be finite and deviations positive: {} and {}",
                         mean[c], deviation[c]);
  const auto [scale, shift] = scale_and_shift(normalisation_);
  scale_ = per_channel(scale);
  shift_ = per_channel(shift);
}

Tensor Classifier::logits(const Tensor& images) const {
  check<ShapeError>(images.ndim() == 4 && images.size(1) == image_[0] &&
                        images.size(2) == image_[1] && images.size(3) == image_[2],
                    "[logits] images must be (N, {}, {}, {}): {}", image_[0], image_[1], image_[2],
                    images.shape().to_string());
  return model_->forward(images.astype(DType::float32) * scale_ + shift_);
}

HostArray Classifier::read_image(const std::string& path, bool resize) const {
  check<ArgumentError>(image_[0] == 1 || image_[0] == 3,
                       "[predict] images of files have 1 or 3 channels, the model wants {}",
                       image_[0]);
  const auto channels = image_[0] == 1 ? io::Channels::gray : io::Channels::rgb;
  auto image = data_detail::to_planes(io::load_image(path, channels));
  if (resize) return data::resize_image(image, image_[1], image_[2]);
  check<ShapeError>(image.shape() == image_,
                    "[predict] {}: the model wants images of {} x {} pixels (height x width): {} x "
                    "{}",
                    path, image_[1], image_[2], image.shape()[1], image.shape()[2]);
  return image;
}

void check_classes(const char* op, const std::vector<std::string>& model,
                   const std::vector<std::string>& data) {
  check<ArgumentError>(data.size() <= model.size(),
                       "[{}] labels must be in [0, {}), the classes of the model: the data has {} "
                       "classes",
                       op, model.size(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i)
    check<ArgumentError>(data[i] == model[i],
                         "[{}] the data must have the classes of the model: class {} is '{}' in "
                         "the data and '{}' in the model",
                         op, i, data[i], model[i]);
}

Evaluation evaluate(const Classifier& classifier, std::shared_ptr<const data::Dataset> dataset,
                    std::int64_t batch, int workers) {
  check<ArgumentError>(dataset != nullptr && dataset->size() > 0,
                       "[evaluate] there must be a dataset with samples");
  check_classes("evaluate", classifier.classes(), dataset->classes());
  Evaluation result;
  result.classes = classifier.classes();
  const auto classes = result.classes.size();
  result.confusion.resize(classes * classes);
  const nn::EvalScope judging(*classifier.model());
  data::Loader loader(dataset, {.batch = batch, .workers = workers, .queue = classifier.queue()});
  double loss = 0;
  std::int64_t right = 0;
  for (const data::Batch& part : loader) {
    check_interrupt();
    const auto logits = classifier.logits(part.images);
    const auto total = ops::cross_entropy(logits, part.labels, ops::Reduction::sum);
    const auto answers = ops::argmax(logits, 1).to_vector<std::int64_t>();
    const auto labels = part.labels.to_vector<std::int64_t>();
    loss += total.item();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto truth = static_cast<std::size_t>(labels[i]);
      ++result.confusion[truth * classes + static_cast<std::size_t>(answers[i])];
      right += answers[i] == labels[i] ? 1 : 0;
    }
    result.samples += static_cast<std::int64_t>(answers.size());
  }
  result.loss = loss / static_cast<double>(result.samples);
  result.accuracy = static_cast<double>(right) / static_cast<double>(result.samples);
  return result;
}

std::vector<std::vector<float>> predict(const Classifier& classifier,
                                        const std::vector<HostArray>& images) {
  constexpr std::size_t kBatch = 256;
  const nn::EvalScope judging(*classifier.model());
  const auto classes = classifier.classes().size();
  std::vector<std::vector<float>> result;
  for (std::size_t begin = 0; begin < images.size(); begin += kBatch) {
    const auto end = std::min(begin + kBatch, images.size());
    const auto part = joined(classifier, {images.begin() + static_cast<std::ptrdiff_t>(begin),
                                          images.begin() + static_cast<std::ptrdiff_t>(end)});
    const auto all = ops::softmax(classifier.logits(part), 1).to_vector<float>();
    for (std::size_t i = 0; i < end - begin; ++i) {
      const auto* row = all.data() + i * classes;
      result.emplace_back(row, row + classes);
    }
  }
  return result;
}

}  // namespace netcl::train
