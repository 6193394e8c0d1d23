// netcl train: trains a classifier, shows how it goes, keeps it in a file.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "command.h"
#include "second_compiler.h"
#include "train_display.h"

namespace netcl::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultData = "data/mnist";
constexpr const char* kInterruptedFile = "netcl-interrupted.safetensors";
// The steps whose kernels a report shows: after the first ones, which compile.
constexpr std::int64_t kProfileBegin = 20, kProfileSteps = 40;

struct TrainRequest {
  train::Options options;
  std::string save, report, image_size;
  bool json = false;
};

// "28" or "28x32" (height x width).
void set_image_size(train::Options& options, const std::string& text) {
  if (text.empty()) return;
  const auto cross = text.find('x');
  const auto number = [&](const std::string& part) {
    const bool digits = !part.empty() && part.size() < 6 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stol(part) == 0)
      throw CLI::ValidationError("--image-size", "must be like 32 or 32x48: " + text);
    return std::stol(part);
  };
  options.height = number(text.substr(0, cross));
  options.width = cross == std::string::npos ? options.height : number(text.substr(cross + 1));
}

// The command that goes on from `file`, or begins again without one.
std::string command_line(const TrainRequest& request, const train::Trainer& trainer,
                         const std::string& file) {
  std::string command = "netcl train --data " + shell_word(trainer.data_directory());
  if (request.options.device != "auto")
    command += " --device " + shell_word(request.options.device);
  if (!file.empty())
    command += " --resume " + shell_word(file);
  else if (!request.options.resume.empty())
    command += " --resume " + shell_word(request.options.resume);
  else
    command += fmt::format(" --model {} --batch {} --seed {}", shell_word(trainer.model_name()),
                           trainer.batch(), trainer.seed());
  command += fmt::format(" --epochs {} --lr {} --schedule {}", trainer.epochs(), trainer.lr(),
                         trainer.schedule());
  if (!request.save.empty()) command += " --save " + shell_word(request.save);
  if (!request.report.empty()) command += " --report " + shell_word(request.report);
  if (request.json) command += " --json";
  return command;
}

// A file that cannot be written must not be found out after hours of training.
void check_writable(const std::string& path) {
  if (path.empty()) return;
  const auto directory = fs::path(path).parent_path();
  std::error_code ignored;
  if (!directory.empty() && !fs::is_directory(directory, ignored))
    throw FileError(fmt::format("[train] the directory must exist: {}", directory.string()));
  if (fs::is_directory(path, ignored))
    throw FileError(fmt::format("[train] this must be a file, not a directory: {}", path));
}

// Records the kernels of some steps.
class KernelSample {
 public:
  explicit KernelSample(bool wanted) : wanted_(wanted && !is_profiling()) {}
  ~KernelSample() {
    if (running_) stop_profiling();
  }
  KernelSample(const KernelSample&) = delete;
  KernelSample& operator=(const KernelSample&) = delete;

  void progress(std::int64_t step) {
    if (!wanted_) return;
    if (first_ < 0) first_ = step;
    if (!running_ && step >= first_ + kProfileBegin) start_profiling(), running_ = true;
    if (running_ && step >= first_ + kProfileBegin + kProfileSteps) finish();
  }
  std::vector<KernelSummary> take() {
    if (running_) finish();
    if (kernels_.empty() && is_profiling()) return kernel_summary();  // NETCL_PROFILE
    return std::move(kernels_);
  }

 private:
  void finish() {
    kernels_ = kernel_summary();
    stop_profiling();
    clear_profile();
    running_ = wanted_ = false;
  }
  bool wanted_, running_ = false;
  std::int64_t first_ = -1;
  std::vector<KernelSummary> kernels_;
};

void write_report(const TrainRequest& request, train::Trainer& trainer,
                  const train::Evaluation* evaluation, KernelSample& kernels) {
  const auto& classifier = trainer.classifier();
  train::Report report;
  report.title = fmt::format("{} on {}", trainer.model_name(), trainer.data_directory());
  report.settings = {
      {"device", fmt::format("{} ({})", trainer.device().device_name, trainer.device().backend)},
      {"data", fmt::format("{}: {} images {}", trainer.data_directory(), trainer.samples(),
                           classifier.image().to_string())},
      {"model", fmt::format("{}, {} parameters", trainer.model_name(),
                            classifier.model()->parameter_count())},
      {"optimiser", fmt::format("Adam, lr {} ({}), batch {}", trainer.lr(), trainer.schedule(),
                                trainer.batch())},
      {"epochs", fmt::format("{} ({} steps)", trainer.epochs(), trainer.steps())},
      {"seed", std::to_string(trainer.seed())},
      {"netcl", NETCL_VERSION}};
  report.curve = trainer.curve();
  report.history = trainer.history();
  if (evaluation != nullptr) report.evaluation = *evaluation;
  if (trainer.test_data())
    report.samples = train::sample_predictions(classifier, *trainer.test_data());
  report.kernels = kernels.take();
  std::ofstream out(request.report, std::ios::binary);
  out << train::report_html(report);
  out.close();
  if (!out) throw FileError(fmt::format("[train] the report must be writable: {}", request.report));
}

int interrupted(const TrainRequest& request, const train::Trainer& trainer, TrainDisplay& display) {
  std::string file;
  if (trainer.can_save()) {
    file = request.save.empty() ? kInterruptedFile : request.save;
    trainer.save(file);
  }
  display.interrupted(file, command_line(request, trainer, file));
  return interrupt_exit_code();
}

void save_between(const TrainRequest& request, const train::Trainer& trainer,
                  TrainDisplay& display) {
  if (request.save.empty() || trainer.finished()) return;
  try {
    trainer.save(request.save);
  } catch (const FileError& error) {
    // The run is worth more than this copy of it; the last save is the one that must work.
    display.note(fmt::format("could not save after this epoch: {}", error.what()));
  }
}

int run(TrainRequest request) {
  auto& options = request.options;
  if (options.data.empty() && options.resume.empty()) {
    if (!fs::is_directory(kDefaultData))
      throw ArgumentError(
          fmt::format("[train] there is no {} here: name a directory with --data", kDefaultData));
    options.data = kDefaultData;
  }
  check_writable(request.save);
  check_writable(request.report);
  // Times of kernels need a queue that was made for it.
  if (!request.report.empty()) ::setenv("NETCL_PROFILE_EVENTS", "1", 0);
  if (compiled_ahead([&] { train::Trainer(options).run({}, /*steps=*/1); })) return 0;
  train::Trainer trainer(options);
  const auto display = make_train_display(request.json);
  display->start(trainer);
  if (!trainer.test_data()) display->note("no test data: " + trainer.test_data_problem());
  KernelSample kernels(!request.report.empty());
  std::optional<train::Evaluation> evaluation;
  try {
    trainer.run({.progress =
                     [&](const train::Progress& now) {
                       kernels.progress(now.step);
                       display->progress(now);
                     },
                 .epoch =
                     [&](const train::EpochRecord& record) {
                       display->epoch(record);
                       save_between(request, trainer, *display);
                     }});
    if (trainer.test_data()) evaluation = trainer.evaluate();
  } catch (const Interrupted&) {
    return interrupted(request, trainer, *display);
  }
  const auto* result = evaluation ? &*evaluation : nullptr;
  display->end(trainer, result);
  if (!request.save.empty()) trainer.save(request.save), display->saved(request.save);
  if (!request.report.empty()) {
    write_report(request, trainer, result, kernels);
    display->saved(request.report);
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("train", "trains a classifier of images");
  auto request = std::make_shared<TrainRequest>();
  auto& options = request->options;
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  command->add_option("--data", options.data,
                      "a directory with MNIST or CIFAR files, or folders train/ and test/ with a "
                      "folder of images per class (default: data/mnist)");
  command->add_option("--model", options.model, "mlp, cnn (default), resnet18 or a file *.json");
  command->add_option("--device", options.device, "a selector, as in `netcl devices`");
  command->add_option("--epochs", options.epochs, "default 1")->check(positive);
  command->add_option("--batch", options.batch, "default 64")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("--lr", options.lr, "the highest rate of the run, default 0.004")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--schedule", options.schedule,
                   "of the rate: cosine (default) falls to 0 at the end, or constant")
      ->check(CLI::IsMember({"cosine", "constant"}));
  command->add_option("--seed", options.seed, "default 0");
  command->add_option("--workers", options.workers, "threads that make batches, default 2")
      ->check(CLI::Range(0, 1024));
  command->add_option("--image-size", request->image_size,
                      "stretch the images of folders, e.g. 32 or 32x48 (height x width)");
  command->add_option("--save", request->save, "keep the model and the state of the run here");
  command->add_option("--resume", options.resume, "go on from this file");
  command->add_option("--report", request->report, "write an HTML page about the run");
  command->add_flag("--json", request->json, "JSON, one object per line");
  command->callback([request, &action] {
    set_image_size(request->options, request->image_size);
    action = [request] { return run(*request); };
  });
}

}  // namespace netcl::cli
