// netcl eval, netcl predict and netcl export: what a trained classifier is worth, what it says, and
// taking it elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "command.h"
#include "train_display.h"

namespace netcl::cli {
namespace {

struct EvalRequest {
  std::string file, data, device = "auto";
  bool json = false;
};

struct PredictRequest {
  std::string file, device = "auto";
  std::vector<std::string> images;
  bool resize = false, json = false;
};

std::string data_of(const EvalRequest& request) {
  if (!request.data.empty()) return request.data;
  auto stored = train::checkpoint_data(request.file);
  std::error_code ignored;
  if (!std::filesystem::is_directory(stored, ignored))
    throw ArgumentError(fmt::format(
        "[eval] the data of the checkpoint is not there: name a directory with --data: {}",
        stored));
  return stored;
}

int run_eval(const EvalRequest& request) {
  const ActiveDevice device(request.device);
  const auto classifier = train::Classifier::load(request.file);
  data::ImageFolder::Options folder;
  folder.height = classifier.image()[1];
  folder.width = classifier.image()[2];
  folder.gray = classifier.image()[0] == 1;
  const auto dataset = data::open_dataset(data_of(request), data::Split::test, folder);
  const auto result = train::evaluate(classifier, dataset);
  if (request.json)
    fmt::print("{}\n", evaluation_json(result, "eval"));
  else
    print_evaluation(result);
  return 0;
}

void print_answer(const train::Classifier& classifier, const std::string& path,
                  const std::vector<float>& probabilities) {
  constexpr std::size_t kShown = 3;
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return probabilities[a] > probabilities[b];
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i)
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", classifier.classes()[order[i]],
                        100 * probabilities[order[i]]);
  fmt::print("{}: {}\n", path, text);
}

int run_predict(const PredictRequest& request) {
  const ActiveDevice device(request.device);
  const auto classifier = train::Classifier::load(request.file);
  std::vector<HostArray> images;
  for (const auto& path : request.images)
    images.push_back(classifier.read_image(path, request.resize));
  const auto answers = train::predict(classifier, images);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!request.json) {
      print_answer(classifier, request.images[i], answers[i]);
      continue;
    }
    const auto best = std::max_element(answers[i].begin(), answers[i].end()) - answers[i].begin();
    const nlohmann::json line{{"image", request.images[i]},
                              {"class", classifier.classes()[static_cast<std::size_t>(best)]},
                              {"classes", classifier.classes()},
                              {"probabilities", answers[i]}};
    fmt::print("{}\n", line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("eval", "tests a trained classifier");
  auto request = std::make_shared<EvalRequest>();
  command->add_option("file", request->file, "what `netcl train --save` wrote")->required();
  command->add_option("--data", request->data, "a directory, as for train (default: the same)");
  command->add_option("--device", request->device, "a selector, as in `netcl devices`");
  command->add_flag("--json", request->json, "JSON instead of text");
  command->callback([request, &action] { action = [request] { return run_eval(*request); }; });
}

void add_predict(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("predict", "says what a trained classifier sees in images");
  auto request = std::make_shared<PredictRequest>();
  command->add_option("file", request->file, "what `netcl train --save` wrote")->required();
  command->add_option("images", request->images, "PNG or JPEG files")->required();
  command->add_option("--device", request->device, "a selector, as in `netcl devices`");
  command->add_flag("--resize", request->resize, "stretch images to the size of the model's");
  command->add_flag("--json", request->json, "JSON, one object per image");
  command->callback([request, &action] { action = [request] { return run_predict(*request); }; });
}

void add_export(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("export", "writes a trained classifier as an ONNX file");
  auto files = std::make_shared<std::pair<std::string, std::string>>();
  command->add_option("file", files->first, "a file that `netcl train --save` wrote")->required();
  command->add_option("onnx", files->second, "the ONNX file to write")->required();
  command->callback([files, &action] {
    action = [files] {
      const ActiveDevice device("cpu");  // it only has to be read
      train::save_onnx(files->second, train::Classifier::load(files->first));
      fmt::print("wrote {}\n", files->second);
      return 0;
    };
  });
}

}  // namespace netcl::cli
