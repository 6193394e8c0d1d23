// Models as JSON. The text is untrusted: every layer, name and value is checked.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "nn/support.h"

namespace netcl::nn {

ModulePtr make_residual_block(std::int64_t in, std::int64_t width, std::int64_t out,
                              std::int64_t stride);

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;  // of modules in modules
constexpr std::size_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxSize = 1 << 24;  // of one number: channels, widths

// The settings of one layer, taken one by one; what is left over is a mistake.
class Settings {
 public:
  Settings(const json& layer, std::string where) : layer_(layer), where_(std::move(where)) {
    used_.insert("type");
  }

  std::int64_t integer(const char* name) { return to_integer(name, get(name)); }
  std::int64_t integer(const char* name, std::int64_t otherwise) {
    return has(name) ? integer(name) : otherwise;
  }
  double number(const char* name, double otherwise) {
    if (!has(name)) return otherwise;
    const auto& value = get(name);
    check<FormatError>(value.is_number(), "[model] {}: '{}' must be a number: {}", where_, name,
                       shown(value));
    return value.get<double>();
  }
  bool flag(const char* name, bool otherwise) {
    if (!has(name)) return otherwise;
    const auto& value = get(name);
    check<FormatError>(value.is_boolean(), "[model] {}: '{}' must be true or false: {}", where_,
                       name, shown(value));
    return value.get<bool>();
  }
  std::string text(const char* name) {
    const auto& value = get(name);
    check<FormatError>(value.is_string(), "[model] {}: '{}' must be a text: {}", where_, name,
                       shown(value));
    return value.get<std::string>();
  }
  // A number stands for both.
  ops::Pair pair(const char* name, std::optional<ops::Pair> otherwise = {}) {
    if (otherwise && !has(name)) return *otherwise;
    const auto& value = get(name);
    if (value.is_number_integer()) {
      const auto both = to_integer(name, value);
      return {both, both};
    }
    check<FormatError>(value.is_array() && value.size() == 2,
                       "[model] {}: '{}' must be a number or two: {}", where_, name, shown(value));
    return {to_integer(name, value[0]), to_integer(name, value[1])};
  }
  std::vector<std::int64_t> integers(const char* name) {
    const auto& value = get(name);
    if (value.is_number_integer()) return {to_integer(name, value)};
    check<FormatError>(value.is_array() && value.size() <= 8,
                       "[model] {}: '{}' must be a list of at most 8 numbers: {}", where_, name,
                       shown(value));
    std::vector<std::int64_t> result;
    for (const auto& one : value) result.push_back(to_integer(name, one));
    return result;
  }
  const json& list(const char* name) {
    const auto& value = get(name);
    check<FormatError>(value.is_array() && value.size() <= kMaxLayers,
                       "[model] {}: '{}' must be a list of at most {} layers", where_, name,
                       kMaxLayers);
    return value;
  }
  const std::string& where() const { return where_; }

  void finish() const {
    for (const auto& [name, value] : layer_.items())
      check<FormatError>(used_.contains(name), "[model] {}: there is no setting '{}'", where_,
                         name);
  }

 private:
  bool has(const char* name) const { return layer_.contains(name); }
  const json& get(const char* name) {
    used_.insert(name);
    check<FormatError>(has(name), "[model] {}: '{}' is missing", where_, name);
    return layer_.at(name);
  }
  std::int64_t to_integer(const char* name, const json& value) const {
    check<FormatError>(value.is_number_integer(), "[model] {}: '{}' must be a whole number: {}",
                       where_, name, shown(value));
    const auto number = value.get<std::int64_t>();
    check<FormatError>(number >= 0 && number <= kMaxSize, "[model] {}: '{}' must be in [0, {}]: {}",
                       where_, name, kMaxSize, number);
    return number;
  }

  const json& layer_;
  std::string where_;
  std::set<std::string> used_;
};

ModulePtr read(const json& layer, const std::string& where, int depth);

ModulePtr read_sequential(Settings& s, int depth) {
  auto result = make<Sequential>();
  std::size_t index = 0;
  for (const auto& one : s.list("layers")) {
    result->append(read(one, fmt::format("{} layer {}", s.where(), index), depth + 1));
    ++index;
  }
  return result;
}

using Reader = ModulePtr (*)(Settings&);

ops::PoolOptions pool_options(Settings& s) {
  ops::PoolOptions options;
  options.stride = s.pair("stride", ops::Pair{0, 0});
  options.padding = s.pair("padding", ops::Pair{0, 0});
  return options;
}

// What both kinds of convolution have.
template <class Options>
Options conv_options(Settings& s) {
  Options options;
  options.stride = s.pair("stride", ops::Pair{1, 1});
  options.padding = s.pair("padding", ops::Pair{0, 0});
  options.dilation = s.pair("dilation", ops::Pair{1, 1});
  options.groups = s.integer("groups", 1);
  return options;
}

template <class Layer, class Options>
ModulePtr make_conv(Settings& s, const Options& options) {
  return make<Layer>(s.integer("in"), s.integer("out"), s.pair("kernel"), options,
                     s.flag("bias", true));
}

ModulePtr read_conv2d(Settings& s) {
  return make_conv<Conv2d>(s, conv_options<ops::Conv2dOptions>(s));
}

ModulePtr read_conv_transpose2d(Settings& s) {
  auto options = conv_options<ops::ConvTranspose2dOptions>(s);
  options.output_padding = s.pair("output_padding", ops::Pair{0, 0});
  return make_conv<ConvTranspose2d>(s, options);
}

ModulePtr read_gpt(Settings& s) {
  GPT::Options options;
  options.vocabulary = s.integer("vocabulary");
  options.context = s.integer("context");
  options.layers = s.integer("layers");
  options.heads = s.integer("heads");
  options.width = s.integer("width");
  options.dropout = s.number("dropout", 0);
  return make<GPT>(options);
}

ModulePtr read_block(Settings& s) {
  TransformerBlock::Options options;
  options.hidden = s.integer("hidden", 0);
  options.dropout = s.number("dropout", 0);
  options.causal = s.flag("causal", false);
  return make<TransformerBlock>(s.integer("width"), s.integer("heads"), options);
}

ModulePtr read_avg_pool2d(Settings& s) {
  auto options = pool_options(s);
  options.count_padding = s.flag("count_padding", true);
  return make<AvgPool2d>(s.pair("window"), options);
}

const std::map<std::string, Reader>& readers() {
  static const auto* const all = new std::map<std::string, Reader>{
      {"Linear",
       [](Settings& s) -> ModulePtr {
         return make<Linear>(s.integer("in"), s.integer("out"), s.flag("bias", true));
       }},
      {"Conv2d", read_conv2d},
      {"ConvTranspose2d", read_conv_transpose2d},
      {"BatchNorm1d",
       [](Settings& s) -> ModulePtr {
         return make<BatchNorm1d>(s.integer("channels"), s.number("eps", 1e-5),
                                  s.number("momentum", 0.1));
       }},
      {"BatchNorm2d",
       [](Settings& s) -> ModulePtr {
         return make<BatchNorm2d>(s.integer("channels"), s.number("eps", 1e-5),
                                  s.number("momentum", 0.1));
       }},
      {"LayerNorm",
       [](Settings& s) -> ModulePtr {
         return make<LayerNorm>(s.integers("shape"), s.number("eps", 1e-5));
       }},
      {"RMSNorm",
       [](Settings& s) -> ModulePtr {
         return make<RMSNorm>(s.integer("size"), s.number("eps", 1e-6));
       }},
      {"GroupNorm",
       [](Settings& s) -> ModulePtr {
         return make<GroupNorm>(s.integer("groups"), s.integer("channels"), s.number("eps", 1e-5));
       }},
      {"Dropout", [](Settings& s) -> ModulePtr { return make<Dropout>(s.number("p", 0.5)); }},
      {"MaxPool2d",
       [](Settings& s) -> ModulePtr { return make<MaxPool2d>(s.pair("window"), pool_options(s)); }},
      {"AvgPool2d", read_avg_pool2d},
      {"AdaptiveAvgPool2d",
       [](Settings& s) -> ModulePtr { return make<AdaptiveAvgPool2d>(s.pair("size")); }},
      {"Flatten", [](Settings&) -> ModulePtr { return make<Flatten>(); }},
      {"Activation", [](Settings& s) -> ModulePtr { return make<Activation>(s.text("function")); }},
      {"Embedding",
       [](Settings& s) -> ModulePtr {
         return make<Embedding>(s.integer("rows"), s.integer("width"));
       }},
      {"MultiheadAttention",
       [](Settings& s) -> ModulePtr {
         return make<MultiheadAttention>(s.integer("width"), s.integer("heads"),
                                         s.flag("causal", false), s.flag("bias", true));
       }},
      {"TransformerBlock", read_block},
      {"ResidualBlock",
       [](Settings& s) -> ModulePtr {
         return make_residual_block(s.integer("in"), s.integer("width"), s.integer("out"),
                                    s.integer("stride", 1));
       }},
      {"GPT", read_gpt}};
  return *all;
}

ModulePtr read(const json& layer, const std::string& where, int depth) {
  check<FormatError>(depth <= kMaxDepth, "[model] {}: modules may nest {} deep", where, kMaxDepth);
  check<FormatError>(layer.is_object() && layer.contains("type") && layer["type"].is_string(),
                     "[model] {} must be an object with a \"type\"", where);
  const auto type = layer["type"].get<std::string>();
  Settings settings(layer, fmt::format("{} ({})", where, type));
  ModulePtr result;
  try {
    if (type == "Sequential") {
      result = read_sequential(settings, depth);
    } else {
      const auto found = readers().find(type);
      if (found == readers().end()) {
        std::vector<std::string> known{"Sequential"};
        for (const auto& [name, reader] : readers()) known.push_back(name);
        fail<FormatError>("[model] {}: the type must be one of {}: '{}'", where, join(known, ", "),
                          type);
      }
      result = found->second(settings);
    }
  } catch (const ArgumentError& error) {
    fail<FormatError>("[model] {}: {}", settings.where(), error.what());
  }
  settings.finish();
  return result;
}

json to_object(const Module& module) {
  json object{{"type", module.type()}};
  for (const auto& [name, value] : module.config())
    std::visit([&, &key = name](const auto& v) { object[key] = v; }, value);
  if (module.type() == "Sequential") {
    object["layers"] = json::array();
    for (const auto& [name, child] : module.children())
      object["layers"].push_back(to_object(*child));
  } else {
    check<ArgumentError>(module.config().size() > 0 || module.children().empty(),
                         "[model] {} cannot be written as JSON: it has no settings", module.type());
  }
  return object;
}

}  // namespace

ModulePtr from_json(const std::string& text) {
  return read(parse_json("model", text), "the model", 0);
}

std::string to_json(const Module& module) { return to_object(module).dump(2); }

}  // namespace netcl::nn
