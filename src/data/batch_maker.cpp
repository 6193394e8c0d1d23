// Runs on the loader's threads; nothing here is shared between two of them but the dataset.
#include "data/batch_maker.h"

#include <cstring>

#include "base/check.h"

namespace netcl::data_detail {
namespace {

using data::Batch;
using data::Sample;

// Throws the current exception again, of the same kind, with the sample in front.
[[noreturn]] void rethrow_for(const std::string& sample) {
  try {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const FormatError& error) {
    fail<FormatError>("[loader] {}: {}", sample, error.what());
  } catch (const FileError& error) {
    fail<FileError>("[loader] {}: {}", sample, error.what());
  } catch (const ShapeError& error) {
    fail<ShapeError>("[loader] {}: {}", sample, error.what());
  } catch (const ArgumentError& error) {
    fail<ArgumentError>("[loader] {}: {}", sample, error.what());
  } catch (const DtypeError& error) {
    fail<DtypeError>("[loader] {}: {}", sample, error.what());
  } catch (const std::exception& error) {
    fail<Error>("[loader] {}: {}", sample, error.what());
  } catch (...) {
    fail<Error>("[loader] {}: an exception of an unknown kind", sample);
  }
}

}  // namespace

Sample BatchMaker::load(std::int64_t index, std::uint64_t seed, std::int64_t epoch) const {
  try {
    auto sample = dataset_->sample(index);
    const auto classes = static_cast<std::int64_t>(dataset_->classes().size());
    check<ArgumentError>(sample.label >= 0 && sample.label < classes,
                         "labels must be in [0, {}): {}", classes, sample.label);
    sample.image =
        data::apply(options_.transforms, std::move(sample.image), seed,
                    static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(index));
    check<ArgumentError>(sample.image.data() != nullptr, "the image must not be default-made");
    return sample;
  } catch (...) {
    rethrow_for(dataset_->describe(index));
  }
}

HostArray BatchMaker::joined(const std::vector<Sample>& samples,
                             const std::vector<std::int64_t>& indices) const {
  const auto& first = samples.front().image;
  std::vector<std::int64_t> sizes = first.shape().sizes();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(samples.size()));
  HostArray images(Shape(std::move(sizes)), first.dtype());
  auto* to = static_cast<std::byte*>(images.data());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& image = samples[i].image;
    check<ShapeError>(image.shape() == first.shape() && image.dtype() == first.dtype(),
                      "[loader] the images of a batch must have the same shape and dtype: {} has "
                      "{} {}, {} has {} {}",
                      dataset_->describe(indices[0]), name_of(first.dtype()),
                      first.shape().to_string(), dataset_->describe(indices[i]),
                      name_of(image.dtype()), image.shape().to_string());
    std::memcpy(to, image.data(), image.nbytes());
    to += image.nbytes();
  }
  return images;
}

Batch BatchMaker::make(std::int64_t index, std::vector<std::int64_t> indices, std::uint64_t seed,
                       std::int64_t epoch, const std::function<bool()>& cancelled) const {
  std::vector<Sample> samples;
  for (const auto i : indices) {
    if (cancelled()) return {};
    samples.push_back(load(i, seed, epoch));
  }
  HostArray labels(Shape{static_cast<std::int64_t>(samples.size())}, DType::int64);
  auto values = labels.values<std::int64_t>();
  for (std::size_t i = 0; i < samples.size(); ++i) values[i] = samples[i].label;
  const auto images = joined(samples, indices);
  // Returns when the values are in staging memory; the device fetches them while it computes.
  TransferOptions transfer;
  transfer.async_copy = true;
  return {Tensor::from_host(options_.queue, images, transfer),
          Tensor::from_host(options_.queue, labels, transfer), index, std::move(indices)};
}

}  // namespace netcl::data_detail
