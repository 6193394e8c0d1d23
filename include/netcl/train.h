// Training a classifier of images, judging it, using it. A run can be stopped and taken up again
// from its checkpoint with the same bits as if nothing had happened: docs/training.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netcl/data.h"
#include "netcl/device.h"
#include "netcl/nn.h"
#include "netcl/profiling.h"
#include "netcl/tensor.h"

namespace netcl::train {

// ---- models
// "mlp", "cnn", "resnet18", or the path of a file *.json in the form of nn::from_json. Made on the
// active device of the thread. ArgumentError unless images (N, channels, height, width) give logits
// (N, classes).
nn::ModulePtr make_model(const std::string& name, std::int64_t channels, std::int64_t height,
                         std::int64_t width, std::int64_t classes);

// Of pixels in [0, 1], per channel.
struct Normalisation {
  std::vector<float> mean, deviation;
  bool operator==(const Normalisation&) const = default;
};
// From at most `most` samples, spread evenly over the dataset.
Normalisation measure_normalisation(const data::Dataset& dataset, std::int64_t most = 2000);

// A network with everything that its answers need.
class Classifier {
 public:
  Classifier(nn::ModulePtr model, std::vector<std::string> classes, const Shape& image,
             Normalisation normalisation);
  // From a checkpoint, to the active device of the thread. FormatError for anything wrong in it.
  static Classifier load(const std::string& path);

  const nn::ModulePtr& model() const { return model_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const Shape& image() const { return image_; }  // (channels, height, width)
  const Normalisation& normalisation() const { return normalisation_; }
  const Queue& queue() const { return scale_.queue(); }

  // images (N, channels, height, width), uint8, on the model's device
  Tensor logits(const Tensor& images) const;
  // A PNG or JPEG as the model wants it. ShapeError for another size, unless it may be stretched.
  HostArray read_image(const std::string& path, bool resize = false) const;

 private:
  nn::ModulePtr model_;
  std::vector<std::string> classes_;
  Shape image_;
  Normalisation normalisation_;
  Tensor scale_, shift_;  // from uint8 to what the model sees
};

// As ONNX: images (N, channels, height, width) in uint8 to logits (N, classes); the classes are in
// the metadata "classes", a list in JSON.
void save_onnx(const std::string& path, const Classifier& classifier);

// Where the data was that a checkpoint was made with; "" when it does not say.
std::string checkpoint_data(const std::string& path);

// ---- judging and using
struct Evaluation {
  double loss = 0, accuracy = 0;
  std::int64_t samples = 0;
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // (true class, answer), row by row
  std::int64_t count(std::size_t truth, std::size_t answer) const {
    return confusion[truth * classes.size() + answer];
  }
};
// ArgumentError when the dataset has other classes than the model, or images of another shape.
Evaluation evaluate(const Classifier& classifier, std::shared_ptr<const data::Dataset> dataset,
                    std::int64_t batch = 256, int workers = 2);

// Probabilities of the classes, for each image (channels, height, width) in uint8.
std::vector<std::vector<float>> predict(const Classifier& classifier,
                                        const std::vector<HostArray>& images);

// ---- training
struct Options {
  std::string data;    // a directory for data::open_dataset; a checkpoint knows its own
  std::string resume;  // a checkpoint to go on from
  std::string device = "auto";
  int workers = 2;                     // threads that make batches
  std::int64_t height = 0, width = 0;  // folders of images: stretch to this size
  // When a run goes on the values are the checkpoint's; epochs, lr and schedule may be others, a
  // different model, batch or seed is an ArgumentError.
  std::optional<std::string> model;    // "cnn"
  std::optional<std::int64_t> epochs;  // 1
  std::optional<std::int64_t> batch;   // 64
  std::optional<double> lr;            // 4e-3, the highest of the run
  // "cosine": the rate grows over the first tenth of all steps and falls to 0 at the last one;
  // "constant".
  std::optional<std::string> schedule;
  std::optional<std::uint64_t> seed;  // 0
};

struct Point {  // of the curve: averages over some steps
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
};

struct EpochRecord {
  std::int64_t epoch = 0;  // from 1 on
  double loss = 0, accuracy = 0;
  bool tested = false;
  double test_loss = 0, test_accuracy = 0;
  double seconds = 0;  // of training, also before the run was resumed
};

struct Progress {
  std::int64_t epoch = 0, epochs = 0;  // epoch from 1 on
  std::int64_t batch = 0, batches = 0;
  std::int64_t step = 0;                           // since the beginning of the run
  double loss = 0, accuracy = 0;                   // of the last few steps
  double images_per_second = 0, seconds_left = 0;  // 0: not known yet
};

// On the thread that runs; may throw, which ends the run between two steps.
struct Callbacks {
  std::function<void(const Progress&)> progress;  // every 20 steps or 0.2 s
  std::function<void(const EpochRecord&)> epoch;  // after its test
};

// Adam on the cross entropy. Used by one thread.
class Trainer {
 public:
  explicit Trainer(const Options& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Until all epochs are done, or `steps` further steps if that is fewer. Interrupted (Ctrl+C)
  // comes between two steps; calling it again goes on.
  void run(const Callbacks& callbacks = {}, std::int64_t steps = INT64_MAX);
  bool finished() const;
  // A safetensors file, complete or absent. Not after can_save() is false: the first step of a
  // process may be broken off in its middle, because it is the one that compiles kernels.
  void save(const std::string& path) const;
  bool can_save() const;

  // Of the test data, or what the last epoch's test said. ArgumentError without test data.
  Evaluation evaluate();
  std::shared_ptr<const data::Dataset> test_data() const;  // null when there is none
  const std::string& test_data_problem() const;            // why there is none

  const Classifier& classifier() const;
  const DeviceHandle& device() const;
  const std::vector<EpochRecord>& history() const;
  const std::vector<Point>& curve() const;
  std::string model_name() const;
  std::string data_directory() const;
  std::int64_t samples() const;
  std::int64_t steps() const, epochs() const, batch() const;
  double lr() const;  // before the schedule
  std::string schedule() const;
  std::uint64_t seed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- the report
struct Report {
  std::string title;
  std::vector<std::pair<std::string, std::string>> settings;  // shown as a table
  std::vector<Point> curve;
  std::vector<EpochRecord> history;
  std::optional<Evaluation> evaluation;
  struct Sample {
    HostArray image;  // uint8 (channels, height, width)
    std::size_t truth = 0, answer = 0;
    double probability = 0;
  };
  std::vector<Sample> samples;
  std::vector<KernelSummary> kernels;
};
// Answers for the first samples and for some that the model gets wrong.
std::vector<Report::Sample> sample_predictions(const Classifier& classifier,
                                               const data::Dataset& dataset,
                                               std::size_t count = 24);
// One HTML page without scripts or other files.
std::string report_html(const Report& report);

}  // namespace netcl::train
