#include "train/checkpoint.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "netcl/version.h"
#include "train/probe.h"

namespace netcl::train {
namespace {

using nlohmann::json;

constexpr const char* kKey = "netcl.checkpoint";
constexpr int kVersion = 1;
constexpr std::int64_t kMaxSide = 32768, kMaxCount = std::int64_t{1} << 53;
constexpr std::size_t kMaxList = 10'000'000;

// JSON has no NaN: a loss that is not finite is null.
json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json to_json(const data::LoaderState& s) {
  return {{"seed", s.seed},          {"epoch", s.epoch}, {"position", s.position},
          {"samples", s.samples},    {"batch", s.batch}, {"shuffle", s.shuffle},
          {"drop_last", s.drop_last}};
}

json to_json(const EpochRecord& r) {
  json result{{"epoch", r.epoch},
              {"loss", number_or_null(r.loss)},
              {"accuracy", r.accuracy},
              {"seconds", r.seconds}};
  if (r.tested) {
    result["test_loss"] = number_or_null(r.test_loss);
    result["test_accuracy"] = r.test_accuracy;
  }
  return result;
}

json to_json(const Checkpoint& c) {
  const auto& run = c.run;
  json history = json::array(), curve = json::array();
  for (const auto& record : run.history) history.push_back(to_json(record));
  for (const auto& point : run.curve)
    curve.push_back({point.step, number_or_null(point.loss), point.accuracy});
  return {{"version", kVersion},
          {"netcl", NETCL_VERSION},
          {"model", json::parse(c.model)},
          {"model_name", run.model_name},
          {"classes", c.classes},
          {"image", c.image.sizes()},
          {"mean", c.normalisation.mean},
          {"deviation", c.normalisation.deviation},
          {"data", run.data},
          {"resize", {run.height, run.width}},
          {"epochs", run.epochs},
          {"loader", to_json(run.loader)},
          {"optimizer",
           {{"name", "Adam"},
            {"steps", run.optimizer_steps},
            {"lr", run.lr},
            {"schedule", run.schedule},
            {"parameter_steps", run.parameter_steps}}},
          {"random", {{"seed", run.random.seed}, {"draws", run.random.draws}}},
          {"totals",
           {{"loss", number_or_null(run.epoch.loss)},
            {"right", run.epoch.right},
            {"seen", run.epoch.seen},
            {"seconds", run.epoch.seconds},
            {"window_seen", run.window_seen}}},
          {"history", std::move(history)},
          {"curve", std::move(curve)}};
}

// One object of the JSON; every value is checked when it is taken.
class Object {
 public:
  Object(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    check<FormatError>(value.is_object(), "'{}' must be an object", where_);
  }
  const json& get(const char* name) const {
    const auto found = value_.find(name);
    check<FormatError>(found != value_.end(), "'{}' is missing", path(name));
    return *found;
  }
  bool has(const char* name) const { return value_.contains(name); }
  Object object(const char* name) const { return {get(name), path(name)}; }
  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high = kMaxCount) const {
    return integer_of(get(name), path(name), low, high);
  }
  std::uint64_t unsigned_integer(const char* name) const {
    const auto& value = get(name);
    check<FormatError>(value.is_number_unsigned(), "'{}' must be a whole number from 0 on",
                       path(name));
    return value.get<std::uint64_t>();
  }
  bool flag(const char* name) const {
    check<FormatError>(get(name).is_boolean(), "'{}' must be true or false", path(name));
    return get(name).get<bool>();
  }
  double number(const char* name) const { return number_of(get(name), path(name)); }
  double number_or_nan(const char* name) const {
    return get(name).is_null() ? std::nan("") : number(name);
  }
  std::string text(const char* name) const { return text_of(get(name), path(name)); }
  const json& list(const char* name) const {
    const auto& value = get(name);
    check<FormatError>(value.is_array() && value.size() <= kMaxList,
                       "'{}' must be a list of at most {}", path(name), kMaxList);
    return value;
  }
  std::vector<std::int64_t> integers(const char* name, std::int64_t low, std::int64_t high) const {
    std::vector<std::int64_t> result;
    for (const auto& one : list(name)) result.push_back(integer_of(one, path(name), low, high));
    return result;
  }
  std::vector<float> floats(const char* name) const {
    std::vector<float> result;
    for (const auto& one : list(name))
      result.push_back(static_cast<float>(number_of(one, path(name))));
    return result;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    for (const auto& one : list(name)) result.push_back(text_of(one, path(name)));
    return result;
  }
  static std::int64_t integer_of(const json& value, const std::string& where, std::int64_t low,
                                 std::int64_t high) {
    const bool whole = value.is_number_integer() &&
                       (!value.is_number_unsigned() ||
                        value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
    const auto result = whole ? value.get<std::int64_t>() : low;
    check<FormatError>(whole && result >= low && result <= high,
                       "'{}' must be a whole number in [{}, {}]: {}", where, low, high,
                       shown(value));
    return result;
  }
  static double number_of(const json& value, const std::string& where) {
    check<FormatError>(value.is_number() && std::isfinite(value.get<double>()),
                       "'{}' must be a finite number", where);
    return value.get<double>();
  }

 private:
  std::string path(const char* name) const { return where_.empty() ? name : where_ + "." + name; }
  static std::string text_of(const json& value, const std::string& where) {
    check<FormatError>(value.is_string(), "'{}' must be a text", where);
    return value.get<std::string>();
  }
  const json& value_;
  std::string where_;
};

data::LoaderState read_loader(const Object& from) {
  data::LoaderState s;
  s.seed = from.unsigned_integer("seed");
  s.epoch = from.integer("epoch", 0);
  s.position = from.integer("position", 0);
  s.samples = from.integer("samples", 1);
  s.batch = from.integer("batch", 1);
  s.shuffle = from.flag("shuffle");
  s.drop_last = from.flag("drop_last");
  return s;
}

double fraction(const Object& from, const char* name) {
  const auto value = from.number(name);
  check<FormatError>(value >= 0 && value <= 1, "'{}' must be in [0, 1]: {}", name, value);
  return value;
}

EpochRecord read_record(const json& value, std::int64_t epoch) {
  const Object from(value, "history");
  EpochRecord record;
  record.epoch = from.integer("epoch", epoch, epoch);
  record.loss = from.number_or_nan("loss");
  record.accuracy = fraction(from, "accuracy");
  record.seconds = from.number("seconds");
  record.tested = from.has("test_loss");
  if (record.tested) {
    record.test_loss = from.number_or_nan("test_loss");
    record.test_accuracy = fraction(from, "test_accuracy");
  }
  return record;
}

Point read_point(const json& value) {
  check<FormatError>(value.is_array() && value.size() == 3,
                     "'curve' must have a step, a loss and an accuracy at each place");
  return {Object::integer_of(value[0], "curve", 0, kMaxCount),
          value[1].is_null() ? std::nan("") : Object::number_of(value[1], "curve"),
          Object::number_of(value[2], "curve")};
}

RunState read_run(const Object& from) {
  RunState run;
  run.model_name = from.text("model_name");
  run.data = from.text("data");
  const auto resize = from.integers("resize", 0, kMaxSide);
  check<FormatError>(resize.size() == 2, "'resize' must be two numbers: {}", resize.size());
  run.height = resize[0];
  run.width = resize[1];
  run.epochs = from.integer("epochs", 1);
  run.loader = read_loader(from.object("loader"));
  const auto optimizer = from.object("optimizer");
  check<FormatError>(optimizer.text("name") == "Adam", "'optimizer.name' must be Adam: {}",
                     optimizer.text("name"));
  run.optimizer_steps = optimizer.integer("steps", 0);
  run.lr = optimizer.number("lr");
  run.schedule = optimizer.text("schedule");
  check<FormatError>(run.schedule == kCosine || run.schedule == kConstant,
                     "'optimizer.schedule' must be {} or {}", kCosine, kConstant);
  check<FormatError>(run.lr >= 0, "'optimizer.lr' must not be negative: {}", run.lr);
  run.parameter_steps = optimizer.integers("parameter_steps", 0, run.optimizer_steps);
  const auto random = from.object("random");
  run.random = {random.unsigned_integer("seed"), random.unsigned_integer("draws")};
  const auto totals = from.object("totals");
  run.epoch = {totals.number_or_nan("loss"), totals.integer("right", 0), totals.integer("seen", 0),
               totals.number("seconds")};
  run.window_seen = totals.integer("window_seen", 0);
  for (const auto& value : from.list("history"))
    run.history.push_back(read_record(value, static_cast<std::int64_t>(run.history.size()) + 1));
  check<FormatError>(static_cast<std::int64_t>(run.history.size()) == run.loader.epoch,
                     "'history' must have a record for each of the {} epochs that are done: {}",
                     run.loader.epoch, run.history.size());
  for (const auto& value : from.list("curve")) run.curve.push_back(read_point(value));
  return run;
}

Checkpoint parse(const io::SafetensorsFile& file) {
  const auto found = file.metadata().find(kKey);
  check<FormatError>(found != file.metadata().end(),
                     "this is no checkpoint of netcl: the metadata has no '{}'", kKey);
  const auto value = parse_json(kKey, found->second);
  const Object all(value, "");
  all.integer("version", kVersion, kVersion);
  Checkpoint c;
  c.model = all.get("model").dump(-1, ' ', true, json::error_handler_t::replace);
  c.classes = all.texts("classes");
  check<FormatError>(!c.classes.empty() && c.classes.size() <= 1'000'000,
                     "'classes' must have 1 to 1000000 names: {}", c.classes.size());
  const auto sizes = all.integers("image", 1, kMaxSide);
  check<FormatError>(sizes.size() == 3, "'image' must be three numbers: {}", sizes.size());
  c.image = Shape(sizes);
  c.normalisation = {all.floats("mean"), all.floats("deviation")};
  c.run = read_run(all);
  return c;
}

// Runs f; what does not fit is the file's fault.
template <class F>
auto blaming(const std::string& path, F&& f) {
  try {
    return f();
  } catch (const ArgumentError& error) {
    fail<FormatError>("[checkpoint] {}: {}", path, error.what());
  } catch (const DtypeError& error) {
    fail<FormatError>("[checkpoint] {}: {}", path, error.what());
  } catch (const FormatError& error) {
    fail<FormatError>("[checkpoint] {}: {}", path, error.what());
  }
}

constexpr std::string_view kModel = "model.", kOptimizer = "optim.";

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, const nn::Module& model,
                     const optim::OptimizerState& optimizer, const Tensor& window_loss,
                     const Tensor& window_right) {
  io::TensorMap tensors;
  for (const auto& [name, tensor] : model.state_dict())
    tensors.emplace(std::string(kModel) + name, tensor);
  for (const auto& [name, tensor] : optimizer.tensors)
    tensors.emplace(std::string(kOptimizer) + name, tensor);
  tensors.emplace(kWindowLoss, window_loss);
  tensors.emplace(kWindowRight, window_right);
  // Names of classes and folders may be any bytes; JSON wants UTF-8.
  const auto text = to_json(checkpoint).dump(-1, ' ', true, json::error_handler_t::replace);
  io::save_safetensors(path, tensors, {{kKey, text}, {"format", "netcl"}});
}

CheckpointFile::CheckpointFile(const std::string& path)
    : file_(path), content_(blaming(path, [&] { return parse(file_); })) {}

Classifier CheckpointFile::make_classifier() const {
  return blaming(file_.path(), [&] {
    std::int64_t elements = 0;
    for (const auto& name : file_.names())
      if (name.starts_with(kModel)) elements += file_.shape(name).numel();
    check_model_size(content_.model, elements);
    auto model = nn::from_json(content_.model);
    std::vector<nn::NamedTensor> state;
    const auto queue = get_active_device().queue;
    for (const auto& name : file_.names())
      if (name.starts_with(kModel))
        state.push_back({name.substr(kModel.size()), file_.read(name, queue)});
    model->load_state_dict(state);
    const auto result = probe_model(*model, content_.image);
    const auto classes = static_cast<std::int64_t>(content_.classes.size());
    check<FormatError>(result == Shape{1, classes}, "the model must give (1, {}) for one image: {}",
                       classes, result.to_string());
    return Classifier(model, content_.classes, content_.image, content_.normalisation);
  });
}

optim::OptimizerState CheckpointFile::optimizer_state(const std::vector<Tensor>& parameters) const {
  return blaming(file_.path(), [&] {
    const auto& run = content_.run;
    optim::OptimizerState state{run.optimizer_steps, run.lr, run.parameter_steps, {}};
    check<FormatError>(state.parameter_steps.size() == parameters.size(),
                       "'optimizer.parameter_steps' must have {} numbers: {}", parameters.size(),
                       state.parameter_steps.size());
    const auto queue = parameters.front().queue();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (const auto* slot : {"exp_avg", "exp_avg_sq"}) {
        if (state.parameter_steps[i] == 0) continue;
        const auto name = fmt::format("{}.{}", slot, i);
        const auto stored = std::string(kOptimizer) + name;
        check<FormatError>(file_.contains(stored), "the tensor '{}' is missing", stored);
        check<FormatError>(
            file_.shape(stored) == parameters[i].shape() && file_.dtype(stored) == DType::float32,
            "the tensor '{}' must be float32 {}: {} {}", stored, parameters[i].shape().to_string(),
            name_of(file_.dtype(stored)), file_.shape(stored).to_string());
        state.tensors.push_back({name, file_.read(stored, queue)});
      }
    return state;
  });
}

Tensor CheckpointFile::window(const char* name, DType dtype) const {
  return blaming(file_.path(), [&] {
    check<FormatError>(
        file_.contains(name) && file_.shape(name).empty() && file_.dtype(name) == dtype,
        "the tensor '{}' must be a scalar of {}", name, name_of(dtype));
    return file_.read(name, get_active_device().queue);
  });
}

Classifier Classifier::load(const std::string& path) {
  return CheckpointFile(path).make_classifier();
}

std::string checkpoint_data(const std::string& path) {
  return CheckpointFile(path).content().run.data;
}

}  // namespace netcl::train
