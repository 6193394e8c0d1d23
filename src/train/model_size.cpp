// How large a model's tensors are, from its JSON alone: a checkpoint may claim anything, and a
// layer takes its memory when it is made.
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "train/checkpoint.h"

namespace netcl::train {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxExtent = 1024;  // windows, strides, padding
constexpr double kMost = 9e15;             // of products, as doubles: they cannot overflow

double size_of_value(const json& layer, const char* name, double otherwise) {
  const auto found = layer.find(name);
  if (found == layer.end()) return otherwise;
  if (found->is_number()) return found->get<double>();
  if (!found->is_array()) return otherwise;
  double product = 1;
  for (const auto& one : *found) product *= one.is_number() ? one.get<double>() : 1;
  return product;
}

void check_extents(const json& layer) {
  for (const auto* name :
       {"kernel", "window", "stride", "padding", "output_padding", "dilation", "size"}) {
    const auto found = layer.find(name);
    // RMSNorm's size is a width, counted below.
    if (found == layer.end() || (found->is_number() && std::string_view(name) == "size")) continue;
    const auto& value = *found;
    for (const auto& one : value.is_array() ? value : json::array({value}))
      check<FormatError>(!one.is_number() || one.get<double>() <= kMaxExtent,
                         "the model's '{}' may be at most {}", name, kMaxExtent);
  }
}

// A lower bound of the parameters of one layer.
double parameters_of(const json& layer) {
  const auto get = [&](const char* name, double otherwise) {
    return size_of_value(layer, name, otherwise);
  };
  const auto type = layer.value("type", json("")).is_string()
                        ? layer.value("type", json("")).get<std::string>()
                        : std::string();
  const double width = get("width", 0);
  if (type == "Linear") return get("in", 0) * get("out", 0);
  if (type == "Conv2d" || type == "ConvTranspose2d") {
    const auto kernel = layer.find("kernel");
    const double side = get("kernel", 1);
    const double area = kernel != layer.end() && kernel->is_number() ? side * side : side;
    return get("in", 0) * get("out", 0) * area / std::max(get("groups", 1), 1.0);
  }
  if (type == "Embedding") return get("rows", 0) * width;
  if (type == "MultiheadAttention") return 4 * width * width;
  if (type == "TransformerBlock") {
    const double hidden = get("hidden", 0);
    return 4 * width * width + 2 * width * (hidden > 0 ? hidden : 4 * width);
  }
  if (type == "ResidualBlock") {
    const double in = get("in", 0), out = get("out", 0);
    return in * width + width * out + (in != out ? in * out : 0);
  }
  if (type == "GPT")
    return (get("vocabulary", 0) + get("context", 0)) * width +
           get("layers", 0) * 12 * width * width;
  return get("channels", 0) + get("shape", 0) + (type == "RMSNorm" ? get("size", 0) : 0);
}

double parameters_below(const json& layer, int depth) {
  constexpr int kMaxDepth = 64;
  if (!layer.is_object() || depth > kMaxDepth) return 0;
  check_extents(layer);
  double sum = parameters_of(layer);
  const auto inner = layer.find("layers");
  if (inner != layer.end() && inner->is_array())
    for (const auto& one : *inner) sum += parameters_below(one, depth + 1);
  return sum;
}

}  // namespace

void check_model_size(const std::string& model_json, std::int64_t elements) {
  const double needed = parameters_below(parse_json("model", model_json), 0);
  // A little more may be made: then the tensor that is missing can be named.
  constexpr double kSlack = 1 << 20;
  check<FormatError>(needed <= kMost && needed <= static_cast<double>(elements) + kSlack,
                     "the model needs {} parameters at least, the file has {}", needed, elements);
}

}  // namespace netcl::train
