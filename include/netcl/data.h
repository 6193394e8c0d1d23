// Datasets, transforms of their samples, and the loader that makes batches on a device.
//
// Everything random is counted, not drawn from a shared state: seed, epoch and the sample's index
// decide, so that the same batches come out with any number of workers and after a restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl/io.h"
#include "netcl/tensor.h"

namespace netcl::data {

// ---- datasets

struct Sample {
  HostArray image;  // (channels, height, width), uint8 in all datasets below
  std::int64_t label = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // Called by several threads at once. ArgumentError when out of range.
  virtual Sample sample(std::int64_t index) const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // their names, by label
  virtual std::string describe(std::int64_t index) const;       // for messages: "sample 3"
};

// Samples in memory: images (N, ...) and labels (N), integers from 0 on. Images (N, height, width)
// get one channel. Without names the classes are called "0", "1", ... up to the largest label.
class ArrayDataset : public Dataset {
 public:
  ArrayDataset(HostArray images, const HostArray& labels, std::vector<std::string> classes = {});
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Sample sample(std::int64_t index) const override;
  const std::vector<std::string>& classes() const override { return classes_; }
  const Shape& sample_shape() const { return sample_shape_; }
  const std::vector<std::int64_t>& labels() const { return labels_; }

 private:
  HostArray images_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> classes_;
  Shape sample_shape_;
};

// Images in one folder per class, the classes in the order of their names. Folders below a class
// belong to it. Files are decoded when a sample is asked for.
class ImageFolder : public Dataset {
 public:
  struct Options {
    std::int64_t height = 0, width = 0;  // to resize to; 0 0 leaves the images as they are
    bool gray = false;
    io::ImageLimits limits = {};
  };

  explicit ImageFolder(const std::string& directory) : ImageFolder(directory, Options()) {}
  ImageFolder(const std::string& directory, const Options& options);
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Sample sample(std::int64_t index) const override;
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string describe(std::int64_t index) const override;

 private:
  Options options_;
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, std::int64_t>> files_;  // path, label
};

enum class Split { train, test };

// The four files of MNIST and its relatives, e.g. train-images-idx3-ubyte, with or without ".gz".
std::shared_ptr<ArrayDataset> load_mnist(const std::string& directory, Split split = Split::train);
// CIFAR-10 or CIFAR-100 in the binary version.
std::shared_ptr<ArrayDataset> load_cifar(const std::string& directory, Split split = Split::train);
// Whichever of these is there: MNIST's files, CIFAR's, or folders "train" and "test" (or "val")
// with images. `options` are for the last.
std::shared_ptr<Dataset> open_dataset(const std::string& directory, Split split = Split::train,
                                      const ImageFolder::Options& options = {});

// Stretched to (channels, height, width); smooth both ways, every stored pixel counts.
HostArray resize_image(const HostArray& image, std::int64_t height, std::int64_t width);

// ---- transforms

// Random numbers of one transform of one sample in one epoch (Philox 4x32-10).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample,
               std::uint32_t transform = 0);
  std::uint32_t next();
  double uniform();                          // [0, 1)
  std::uint32_t below(std::uint32_t bound);  // 0 ... bound - 1, each equally likely

 private:
  std::uint64_t seed_, epoch_, sample_;
  std::uint32_t transform_;
  std::uint32_t block_ = 0, used_ = 4;
  std::uint32_t words_[4] = {};
};

// Makes a new array; the given one belongs to the dataset. Called by several threads at once.
using Transform = std::function<HostArray(const HostArray& image, RandomStream& random)>;

Transform to_float();  // uint8 to float32, times 1/255; float32 stays as it is
Transform normalise(std::vector<float> mean, std::vector<float> deviation);  // per channel, float32
Transform random_horizontal_flip(double probability = 0.5);
// A part of height x width anywhere in the image with `padding` zeros around it.
Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding = 0);

// One after the other; each has random numbers of its own, whatever the others use.
HostArray apply(const std::vector<Transform>& transforms, HostArray image, std::uint64_t seed,
                std::uint64_t epoch, std::uint64_t sample);

// ---- the loader

// 0 ... count - 1 in an order that seed and epoch decide, the same on every platform.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

struct LoaderOptions {
  std::int64_t batch = 32;
  bool shuffle = false;
  std::uint64_t seed = 0;
  bool drop_last = false;  // leaves out a last batch that is not full
  int workers = 2;         // threads; 0 does everything in next()
  int prefetch = 4;        // batches that are ready or being made ahead of their use, at most
  Queue queue = {};        // where batches go; empty means the active device of the thread
  std::vector<Transform> transforms = {};
};

struct Batch {
  Tensor images;                      // (B, ...)
  Tensor labels;                      // (B) int64
  std::int64_t index = 0;             // in its epoch
  std::vector<std::int64_t> samples;  // indices in the dataset
};

// What a run must keep to go on with exactly the batches that would have come.
struct LoaderState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // batches already given
  std::int64_t samples = 0, batch = 0;
  bool shuffle = false, drop_last = false;
  bool operator==(const LoaderState&) const = default;
};

// Makes batches on worker threads and uploads them while the device computes. Used by one thread.
class Loader {
 public:
  // ArgumentError unless an epoch has at least one batch.
  explicit Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});
  ~Loader();  // also in the middle of an epoch
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches() const;  // per epoch
  std::int64_t epoch() const;    // that next() is in
  // The next batch of the epoch, or nothing at its end; the call after that begins the next epoch.
  // An error of a worker is thrown here with the sample that caused it, again at each call, until
  // start_epoch or restore.
  std::optional<Batch> next();
  void start_epoch(std::int64_t epoch);  // from its first batch
  LoaderState state() const;
  // ArgumentError when it is of another dataset size, batch size or order. The seed is taken over.
  void restore(const LoaderState& state);

  // `for (const Batch& batch : loader)` gives the rest of the current epoch.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    Iterator() = default;
    explicit Iterator(Loader* loader) : loader_(loader) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_.reset();  // its memory may serve the next one
      batch_ = loader_->next();
      return *this;
    }
    bool operator==(const Iterator& other) const {
      return batch_.has_value() == other.batch_.has_value();
    }

   private:
    Loader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netcl::data
