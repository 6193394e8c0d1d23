// What a training run shows: for people on a terminal, for people in a log, for programs.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "netcl/netcl.h"

namespace netcl::cli {

class TrainDisplay {
 public:
  virtual ~TrainDisplay() = default;
  virtual void start(const train::Trainer& trainer) = 0;
  virtual void progress(const train::Progress& now) = 0;
  virtual void epoch(const train::EpochRecord& record) = 0;
  virtual void note(const std::string& text) = 0;  // a warning
  virtual void saved(const std::string& path) = 0;
  virtual void end(const train::Trainer& trainer, const train::Evaluation* evaluation) = 0;
  // `file`: what was saved; "" when nothing could be. `command`: how to go on.
  virtual void interrupted(const std::string& file, const std::string& command) = 0;
};

std::unique_ptr<TrainDisplay> make_train_display(bool json);

// Loss, accuracy and the confusion matrix, as text and as one line of JSON.
void print_evaluation(const train::Evaluation& evaluation);
std::string evaluation_json(const train::Evaluation& evaluation, const std::string& event);

}  // namespace netcl::cli
