// The file that a run goes on from: one safetensors file with the tensors "model.*", "optim.*" and
// "train.*", and everything else as JSON in its metadata. It is not trusted: FormatError for
// whatever is missing, wrong or does not fit together.
#pragma once

#include <string>
#include <vector>

#include "netcl/io.h"
#include "netcl/optim.h"
#include "netcl/train.h"

namespace netcl::train {

// Sums over the steps of an epoch.
struct Totals {
  double loss = 0;  // times samples
  std::int64_t right = 0, seen = 0;
  double seconds = 0;
};

struct RunState {
  std::string model_name, data;
  std::int64_t height = 0, width = 0;  // that folders of images are stretched to
  std::int64_t epochs = 1;
  data::LoaderState loader;
  std::int64_t optimizer_steps = 0;
  double lr = 0;  // before the schedule
  std::string schedule;
  std::vector<std::int64_t> parameter_steps;
  nn::RandomState random;
  Totals epoch;                  // without the steps that are still summed up on the device
  std::int64_t window_seen = 0;  // samples of those
  std::vector<EpochRecord> history;
  std::vector<Point> curve;
};

struct Checkpoint {
  std::string model;  // as nn::to_json
  std::vector<std::string> classes;
  Shape image;
  Normalisation normalisation;
  RunState run;
};

// Names of schedules.
inline constexpr const char *kCosine = "cosine", *kConstant = "constant";

inline constexpr const char *kWindowLoss = "train.window_loss",
                            *kWindowRight = "train.window_right";

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, const nn::Module& model,
                     const optim::OptimizerState& optimizer, const Tensor& window_loss,
                     const Tensor& window_right);

class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& path);
  const Checkpoint& content() const { return content_; }
  // On the active device of the thread.
  Classifier make_classifier() const;
  optim::OptimizerState optimizer_state(const std::vector<Tensor>& parameters) const;
  Tensor window(const char* name, DType dtype) const;  // a scalar

 private:
  io::SafetensorsFile file_;
  Checkpoint content_;
};

// FormatError when the model's tensors cannot be the file's, before any memory is spent on them.
// `elements`: how many numbers the model's tensors in the file have.
void check_model_size(const std::string& model_json, std::int64_t elements);

}  // namespace netcl::train
