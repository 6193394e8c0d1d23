#include "train_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"

namespace netcl::cli {
namespace {

using nlohmann::json;
using train::EpochRecord;
using train::Evaluation;
using train::Progress;
using train::Trainer;

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0) + 0.5);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void flush() { std::fflush(stdout); }

class TextDisplay : public TrainDisplay {
 public:
  void start(const Trainer& trainer) override {
    const auto& model = *trainer.classifier().model();
    fmt::print("device   {} ({})\n", trainer.device().device_name, trainer.device().backend);
    fmt::print("data     {}: {} training images {}, {} classes, {}\n", trainer.data_directory(),
               trainer.samples(), trainer.classifier().image().to_string(),
               trainer.classifier().classes().size(),
               trainer.test_data() ? fmt::format("{} test images", trainer.test_data()->size())
                                   : std::string("no test images"));
    fmt::print("model    {}, {} parameters\n", trainer.model_name(), model.parameter_count());
    for (const auto& [name, layer] : model.children())
      fmt::print("           {:<48}{:>10}\n", layer->describe(), layer->parameter_count());
    fmt::print("training Adam, lr {} ({}), batch {}, seed {}, {} epoch{}", trainer.lr(),
               trainer.schedule(), trainer.batch(), trainer.seed(), trainer.epochs(),
               trainer.epochs() == 1 ? "" : "s");
    if (trainer.steps() > 0) fmt::print(", going on after step {}", trainer.steps());
    fmt::print("\n");
    flush();
  }

  void progress(const Progress& now) override {
    if (!std::isfinite(now.loss) && !warned_) {
      warned_ = true;
      note("the loss is not finite any more; a smaller --lr may help");
    }
    terminal_ ? bar(now) : line(now);
  }

  void epoch(const EpochRecord& record) override {
    clear();
    fmt::print("epoch {}: loss {:.4f}, accuracy {:.2f} %", record.epoch, record.loss,
               100 * record.accuracy);
    if (record.tested)
      fmt::print("; test loss {:.4f}, test accuracy {:.2f} %", record.test_loss,
                 100 * record.test_accuracy);
    fmt::print("; {:.1f} s\n", record.seconds);
    flush();
  }

  void note(const std::string& text) override {
    clear();
    fmt::print(stderr, "netcl: note: {}\n", text);
  }
  void saved(const std::string& path) override {
    clear();
    fmt::print("saved: {}\n", path);
    flush();
  }
  void end(const Trainer&, const Evaluation* evaluation) override {
    clear();
    if (evaluation != nullptr) print_evaluation(*evaluation);
    flush();
  }
  void interrupted(const std::string& file, const std::string& command) override {
    clear();
    if (file.empty())
      fmt::print("interrupted before the first step was done: nothing to save; begin again with\n");
    else
      fmt::print("interrupted; saved: {}\ngo on with\n", file);
    fmt::print("  {}\n", command);
    flush();
  }

 private:
  void bar(const Progress& now) const {
    const auto text =
        fmt::format(" epoch {}/{}  loss {:.4f}  accuracy {:.2f} %  {:.0f} images/s  {} left",
                    now.epoch, now.epochs, now.loss, 100 * now.accuracy, now.images_per_second,
                    duration(now.seconds_left));
    const auto width = terminal_width(STDERR_FILENO);
    const auto room = width > text.size() + 3 ? width - text.size() - 3 : 0;
    const auto cells = std::min<std::size_t>(room, 30);
    const auto filled = cells * static_cast<std::size_t>(now.batch) /
                        static_cast<std::size_t>(std::max<std::int64_t>(now.batches, 1));
    const auto drawn =
        cells < 5 ? std::string()
                  : "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
    fmt::print(stderr, "\r\033[K{}", (drawn + text).substr(0, width > 0 ? width - 1 : 0));
    std::fflush(stderr);
  }

  // In a log: the first, then every 10 s.
  void line(const Progress& now) {
    const auto time = std::chrono::steady_clock::now();
    if (last_.time_since_epoch().count() != 0 && time - last_ < std::chrono::seconds(10)) return;
    last_ = time;
    fmt::print(
        "epoch {}/{} batch {}/{}: loss {:.4f}, accuracy {:.2f} %, {:.0f} images/s, {} left\n",
        now.epoch, now.epochs, now.batch, now.batches, now.loss, 100 * now.accuracy,
        now.images_per_second, duration(now.seconds_left));
    flush();
  }

  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool warned_ = false;
  std::chrono::steady_clock::time_point last_;
};

void emit(const json& object) {
  fmt::print("{}\n", object.dump(-1, ' ', true, json::error_handler_t::replace));
  flush();
}

class JsonDisplay : public TrainDisplay {
 public:
  void start(const Trainer& trainer) override {
    json layers = json::array();
    for (const auto& [name, layer] : trainer.classifier().model()->children())
      layers.push_back({{"layer", layer->describe()}, {"parameters", layer->parameter_count()}});
    emit({{"event", "start"},
          {"device", trainer.device().device_name},
          {"backend", trainer.device().backend},
          {"data", trainer.data_directory()},
          {"images", trainer.samples()},
          {"test_images", trainer.test_data() ? trainer.test_data()->size() : 0},
          {"classes", trainer.classifier().classes()},
          {"image", trainer.classifier().image().sizes()},
          {"model", trainer.model_name()},
          {"parameters", trainer.classifier().model()->parameter_count()},
          {"layers", layers},
          {"lr", trainer.lr()},
          {"schedule", trainer.schedule()},
          {"batch", trainer.batch()},
          {"seed", trainer.seed()},
          {"epochs", trainer.epochs()},
          {"step", trainer.steps()}});
  }
  void progress(const Progress& now) override {
    emit({{"event", "progress"},
          {"epoch", now.epoch},
          {"batch", now.batch},
          {"batches", now.batches},
          {"step", now.step},
          {"loss", now.loss},
          {"accuracy", now.accuracy},
          {"images_per_second", now.images_per_second},
          {"seconds_left", now.seconds_left}});
  }
  void epoch(const EpochRecord& record) override {
    json line{{"event", "epoch"},
              {"epoch", record.epoch},
              {"loss", record.loss},
              {"accuracy", record.accuracy},
              {"seconds", record.seconds}};
    if (record.tested) {
      line["test_loss"] = record.test_loss;
      line["test_accuracy"] = record.test_accuracy;
    }
    emit(line);
  }
  void note(const std::string& text) override { emit({{"event", "note"}, {"text", text}}); }
  void saved(const std::string& path) override { emit({{"event", "saved"}, {"file", path}}); }
  void end(const Trainer& trainer, const Evaluation* evaluation) override {
    if (evaluation != nullptr)
      fmt::print("{}\n", evaluation_json(*evaluation, "end"));
    else
      emit({{"event", "end"}, {"step", trainer.steps()}});
    flush();
  }
  void interrupted(const std::string& file, const std::string& command) override {
    emit({{"event", "interrupted"}, {"saved", file}, {"command", command}});
  }
};

std::size_t column_width(const Evaluation& e) {
  std::size_t width = 5;
  for (const auto& name : e.classes)
    width = std::max(width, std::min<std::size_t>(name.size(), 10));
  return width + 1;
}

}  // namespace

std::unique_ptr<TrainDisplay> make_train_display(bool json) {
  if (json) return std::make_unique<JsonDisplay>();
  return std::make_unique<TextDisplay>();
}

void print_evaluation(const Evaluation& e) {
  fmt::print("\ntest accuracy {:.2f} % ({} images), loss {:.4f}\n", 100 * e.accuracy, e.samples,
             e.loss);
  constexpr std::size_t kMostClasses = 20;
  if (e.classes.size() > kMostClasses) return;
  const auto width = column_width(e);
  fmt::print(
      "\nrows: the true class; columns: the answers; right: how many of the row are right\n");
  fmt::print("{:>{}}", "", width);
  for (const auto& name : e.classes) fmt::print("{:>{}}", name.substr(0, 10), width);
  fmt::print("\n");
  for (std::size_t truth = 0; truth < e.classes.size(); ++truth) {
    fmt::print("{:>{}}", e.classes[truth].substr(0, 10), width);
    std::int64_t all = 0;
    for (std::size_t answer = 0; answer < e.classes.size(); ++answer) {
      const auto count = e.count(truth, answer);
      all += count;
      fmt::print("{:>{}}", count == 0 ? std::string(".") : std::to_string(count), width);
    }
    if (all > 0)
      fmt::print("  {:6.2f} %",
                 100.0 * static_cast<double>(e.count(truth, truth)) / static_cast<double>(all));
    fmt::print("\n");
  }
}

std::string evaluation_json(const Evaluation& e, const std::string& event) {
  json matrix = json::array();
  for (std::size_t truth = 0; truth < e.classes.size(); ++truth) {
    json row = json::array();
    for (std::size_t answer = 0; answer < e.classes.size(); ++answer)
      row.push_back(e.count(truth, answer));
    matrix.push_back(std::move(row));
  }
  return json{{"event", event},       {"test_loss", e.loss},  {"test_accuracy", e.accuracy},
              {"samples", e.samples}, {"classes", e.classes}, {"confusion", std::move(matrix)}}
      .dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace netcl::cli
