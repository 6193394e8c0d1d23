// Samples in memory.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "netcl/data.h"

namespace netcl::data {
namespace {

std::vector<std::int64_t> integers(const HostArray& labels) {
  std::vector<std::int64_t> result;
  const auto take = [&]<class T>(T) {
    for (const auto value : labels.values<T>()) result.push_back(value);
  };
  switch (labels.dtype()) {
    case DType::uint8:
      take(std::uint8_t{});
      break;
    case DType::int8:
      take(std::int8_t{});
      break;
    case DType::int32:
      take(std::int32_t{});
      break;
    case DType::int64:
      take(std::int64_t{});
      break;
    default:
      fail<DtypeError>("[ArrayDataset] labels must be integers: {}", name_of(labels.dtype()));
  }
  return result;
}

// Names for labels that came without: bounded, because a label may be anything.
std::vector<std::string> numbered(std::int64_t largest) {
  constexpr std::int64_t kMost = 1'000'000;
  check<ArgumentError>(largest < kMost, "[ArrayDataset] labels must be below {}: {}", kMost,
                       largest);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  return names;
}

Shape shape_of_sample(const Shape& images) {
  std::vector<std::int64_t> sizes(images.begin() + 1, images.end());
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 1);
  return Shape(std::move(sizes));
}

}  // namespace

std::string Dataset::describe(std::int64_t index) const {
  return "sample " + std::to_string(index);
}

ArrayDataset::ArrayDataset(HostArray images, const HostArray& labels,
                           std::vector<std::string> classes)
    : images_(std::move(images)), classes_(std::move(classes)) {
  check<ArgumentError>(images_.data() != nullptr && labels.data() != nullptr,
                       "[ArrayDataset] the arrays must not be default-made");
  check<ShapeError>(images_.shape().rank() >= 1 && labels.shape().rank() == 1 &&
                        images_.shape()[0] == labels.shape()[0],
                    "[ArrayDataset] as many labels (N) as images (N, ...) are needed: {} and {}",
                    labels.shape().to_string(), images_.shape().to_string());
  labels_ = integers(labels);
  sample_shape_ = shape_of_sample(images_.shape());
  const auto largest =
      labels_.empty() ? std::int64_t{-1} : *std::max_element(labels_.begin(), labels_.end());
  if (classes_.empty()) classes_ = numbered(largest);
  const auto count = static_cast<std::int64_t>(classes_.size());
  for (std::size_t i = 0; i < labels_.size(); ++i)
    check<ArgumentError>(labels_[i] >= 0 && labels_[i] < count,
                         "[ArrayDataset] labels must be in [0, {}): sample {} has {}", count, i,
                         labels_[i]);
}

Sample ArrayDataset::sample(std::int64_t index) const {
  check<ArgumentError>(index >= 0 && index < size(), "[sample] the index must be in [0, {}): {}",
                       size(), index);
  HostArray image(sample_shape_, images_.dtype());
  const auto* from = static_cast<const std::byte*>(images_.data());
  std::memcpy(image.data(), from + static_cast<std::size_t>(index) * image.nbytes(),
              image.nbytes());
  return {std::move(image), labels_[static_cast<std::size_t>(index)]};
}

}  // namespace netcl::data
