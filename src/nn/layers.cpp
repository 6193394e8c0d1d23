// Products, convolutions, pooling and the small layers.
#include <map>

#include "nn/support.h"

namespace netcl::nn {

// ---- Linear

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias) {
  check_positive("Linear", "in", in);
  check_positive("Linear", "out", out);
  weight = new_tensor({out, in});
  if (with_bias) bias = new_tensor({out});
  init_weight_and_bias(weight, bias, static_cast<double>(in));
  add_parameter("weight", weight);
  add_parameter("bias", bias);
}

Config Linear::config() const {
  return {{"in", weight.size(1)}, {"out", weight.size(0)}, {"bias", static_cast<bool>(bias)}};
}

Tensor Linear::forward(const Tensor& x) { return ops::linear(x, weight, bias); }

namespace {

void check_channels(const char* layer, std::int64_t in, std::int64_t out, std::int64_t groups) {
  check_positive(layer, "in", in);
  check_positive(layer, "out", out);
  check_positive(layer, "groups", groups);
  check<ArgumentError>(in % groups == 0 && out % groups == 0,
                       "[{}] groups must divide the channels: {} of {} and {}", layer, groups, in,
                       out);
}

}  // namespace

// ---- Conv2d

Conv2d::Conv2d(std::int64_t in, std::int64_t out, ops::Pair kernel, ops::Conv2dOptions given,
               bool with_bias)
    : options(given) {
  check_channels("Conv2d", in, out, options.groups);
  const auto per_group = in / options.groups;
  weight = new_tensor({out, per_group, kernel[0], kernel[1]});
  if (with_bias) bias = new_tensor({out});
  init_weight_and_bias(weight, bias, static_cast<double>(per_group * kernel[0] * kernel[1]));
  add_parameter("weight", weight);
  add_parameter("bias", bias);
}

Config Conv2d::config() const {
  return {{"in", weight.size(1) * options.groups},
          {"out", weight.size(0)},
          {"kernel", std::vector<std::int64_t>{weight.size(2), weight.size(3)}},
          {"stride", list_of(options.stride)},
          {"padding", list_of(options.padding)},
          {"dilation", list_of(options.dilation)},
          {"groups", options.groups},
          {"bias", static_cast<bool>(bias)}};
}

Tensor Conv2d::forward(const Tensor& x) { return ops::conv2d(x, weight, bias, options); }

// ---- ConvTranspose2d

ConvTranspose2d::ConvTranspose2d(std::int64_t in, std::int64_t out, ops::Pair kernel,
                                 ops::ConvTranspose2dOptions given, bool with_bias)
    : options(given) {
  check_channels("ConvTranspose2d", in, out, options.groups);
  const auto per_group = out / options.groups;
  weight = new_tensor({in, per_group, kernel[0], kernel[1]});
  if (with_bias) bias = new_tensor({out});
  init_weight_and_bias(weight, bias, static_cast<double>(per_group * kernel[0] * kernel[1]));
  add_parameter("weight", weight);
  add_parameter("bias", bias);
}

Config ConvTranspose2d::config() const {
  return {{"in", weight.size(0)},
          {"out", weight.size(1) * options.groups},
          {"kernel", std::vector<std::int64_t>{weight.size(2), weight.size(3)}},
          {"stride", list_of(options.stride)},
          {"padding", list_of(options.padding)},
          {"output_padding", list_of(options.output_padding)},
          {"dilation", list_of(options.dilation)},
          {"groups", options.groups},
          {"bias", static_cast<bool>(bias)}};
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return ops::conv_transpose2d(x, weight, bias, options);
}

// ---- pooling

namespace {

Config pool_config(const ops::Pair& window, const ops::PoolOptions& options) {
  return {{"window", list_of(window)},
          {"stride", list_of(options.stride)},
          {"padding", list_of(options.padding)}};
}

}  // namespace

MaxPool2d::MaxPool2d(ops::Pair size, ops::PoolOptions given) : window(size), options(given) {}
Config MaxPool2d::config() const { return pool_config(window, options); }
Tensor MaxPool2d::forward(const Tensor& x) { return ops::max_pool2d(x, window, options); }

AvgPool2d::AvgPool2d(ops::Pair size, ops::PoolOptions given) : window(size), options(given) {}
Config AvgPool2d::config() const {
  auto config = pool_config(window, options);
  config.emplace_back("count_padding", options.count_padding);
  return config;
}
Tensor AvgPool2d::forward(const Tensor& x) { return ops::avg_pool2d(x, window, options); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(ops::Pair wanted) : size(wanted) {}
Config AdaptiveAvgPool2d::config() const { return {{"size", list_of(size)}}; }
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) { return ops::adaptive_avg_pool2d(x, size); }

// ---- the small ones

Tensor Flatten::forward(const Tensor& x) {
  check<ShapeError>(x.ndim() >= 1, "[Flatten] the input must have a batch axis: {}",
                    x.shape().to_string());
  std::int64_t rest = 1;
  for (std::int64_t i = 1; i < x.ndim(); ++i) rest *= x.size(i);
  return ops::reshape(x, {x.size(0), rest});
}

Dropout::Dropout(double probability) : p(probability) {
  check<ArgumentError>(p >= 0 && p < 1, "[Dropout] p must be in [0, 1): {}", p);
}
Config Dropout::config() const { return {{"p", p}}; }
Tensor Dropout::forward(const Tensor& x) {
  return is_training() && p > 0 ? ops::dropout(x, p, next_seed()) : x;
}

Embedding::Embedding(std::int64_t rows, std::int64_t width) {
  check_positive("Embedding", "rows", rows);
  check_positive("Embedding", "width", width);
  weight = new_tensor({rows, width});
  init::normal(weight);
  add_parameter("weight", weight);
}
Config Embedding::config() const { return {{"rows", weight.size(0)}, {"width", weight.size(1)}}; }
Tensor Embedding::forward(const Tensor& indices) { return ops::embedding(indices, weight); }

// ---- activations

namespace {

using Function = Tensor (*)(const Tensor&);

const std::map<std::string, Function>& activation_functions() {
  static const auto* const all = new std::map<std::string, Function>{
      {"relu", [](const Tensor& x) { return ops::relu(x); }},
      {"gelu", [](const Tensor& x) { return ops::gelu(x); }},
      {"gelu_tanh", [](const Tensor& x) { return ops::gelu(x, true); }},
      {"silu", [](const Tensor& x) { return ops::silu(x); }},
      {"sigmoid", [](const Tensor& x) { return ops::sigmoid(x); }},
      {"tanh", [](const Tensor& x) { return ops::tanh(x); }},
      {"leaky_relu", [](const Tensor& x) { return ops::leaky_relu(x); }},
      {"elu", [](const Tensor& x) { return ops::elu(x); }},
      {"softplus", [](const Tensor& x) { return ops::softplus(x); }},
      {"mish", [](const Tensor& x) { return ops::mish(x); }},
      {"hard_sigmoid", [](const Tensor& x) { return ops::hard_sigmoid(x); }},
      {"hard_swish", [](const Tensor& x) { return ops::hard_swish(x); }},
      {"softmax", [](const Tensor& x) { return ops::softmax(x); }},
      {"log_softmax", [](const Tensor& x) { return ops::log_softmax(x); }}};
  return *all;
}

}  // namespace

Activation::Activation(std::string name) : function(std::move(name)) {
  const auto found = activation_functions().find(function);
  if (found == activation_functions().end()) {
    std::vector<std::string> known;
    for (const auto& [one, f] : activation_functions()) known.push_back(one);
    fail<ArgumentError>("[Activation] the function must be one of {}: '{}'", join(known, ", "),
                        function);
  }
  apply_ = found->second;
}
Config Activation::config() const { return {{"function", function}}; }
Tensor Activation::forward(const Tensor& x) { return apply_(x); }

ModulePtr relu() { return make<Activation>("relu"); }
ModulePtr gelu() { return make<Activation>("gelu"); }
ModulePtr silu() { return make<Activation>("silu"); }
ModulePtr sigmoid() { return make<Activation>("sigmoid"); }
ModulePtr tanh() { return make<Activation>("tanh"); }

}  // namespace netcl::nn
