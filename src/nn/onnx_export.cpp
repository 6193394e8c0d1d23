// Models as ONNX graphs. Each layer is written from its settings; the layer itself is run on the
// example to learn the shape of what the next one gets.
#include <limits>
#include <map>
#include <numbers>

#include "base/file.h"
#include "io/onnx_file.h"
#include "nn/eval_scope.h"
#include "nn/support.h"

namespace netcl::nn {
namespace {

using io_detail::OnnxAttributes;
using io_detail::OnnxGraph;
using io_detail::OnnxType;

// A result in the graph, and what it is for the example.
struct Value {
  std::string name;
  Tensor sample;
};

class Exporter {
 public:
  Value write(Module& module, const Value& x, const std::string& path);
  OnnxGraph graph;

 private:
  using Names = std::vector<std::string>;

  std::string weight(const std::string& name, const Tensor& tensor) {
    return graph.constant(name, tensor.shape(), tensor.astype(DType::float32).to_vector<float>());
  }
  // What a product takes: x, the weight and, where there is one, the bias.
  template <class Layer>
  Names factors(const Layer& layer, const std::string& x, const std::string& path) {
    Names inputs{x, weight(path + "weight", layer.weight)};
    if (layer.bias) inputs.push_back(weight(path + "bias", layer.bias));
    return inputs;
  }
  std::string binary(const char* op, const std::string& a, const std::string& b) {
    return graph.node(op, {a, b});
  }
  std::string times(const std::string& x, double factor) {
    return binary("Mul", x, graph.scalar(static_cast<float>(factor)));
  }
  std::string plus(const std::string& x, double number) {
    return binary("Add", x, graph.scalar(static_cast<float>(number)));
  }

  std::string linear(const Linear& layer, const Value& x, const std::string& path);
  std::string linear(const Linear& layer, const std::string& x, std::int64_t rank,
                     const std::string& path);
  std::string convolution(const Conv2d& layer, const Value& x, const std::string& path);
  std::string convolution(const ConvTranspose2d& layer, const Value& x, const std::string& path);
  std::string norm(const BatchNorm& layer, const Value& x, const std::string& path);
  std::string norm(const LayerNorm& layer, const std::string& x, const std::string& path);
  std::string norm(const RMSNorm& layer, const Value& x, const std::string& path);
  std::string norm(const GroupNorm& layer, const Value& x, const std::string& path);
  std::string pool(const AdaptiveAvgPool2d& layer, const Value& x);
  std::string activation(const std::string& function, const std::string& x);
  std::string attention(const MultiheadAttention& layer, const Value& x, const std::string& path);
  std::string block(Module& layer, const Value& x, const std::string& path);
  std::string residual(Module& layer, const Value& x, const std::string& path);
  std::string gpt(GPT& layer, const Value& x, const std::string& path);
  std::string layer(Module& module, const Value& x, const std::string& path);
};

template <class T>
const T* as(const Module& module) {
  return dynamic_cast<const T*>(&module);
}

Module* child(const Module& module, std::string_view name) {
  for (const auto& [own, one] : module.children())
    if (own == name) return one.get();
  return nullptr;
}

std::vector<std::int64_t> both_ends(const ops::Pair& padding) {
  return {padding[0], padding[1], padding[0], padding[1]};
}

OnnxAttributes pool_attributes(const ops::Pair& window, const ops::PoolOptions& options) {
  const ops::Pair stride{options.stride[0] > 0 ? options.stride[0] : window[0],
                         options.stride[1] > 0 ? options.stride[1] : window[1]};
  return {{"kernel_shape", list_of(window)},
          {"strides", list_of(stride)},
          {"pads", both_ends(options.padding)}};
}

template <class Layer>
OnnxAttributes conv_attributes(const Layer& layer) {
  return {{"kernel_shape", std::vector<std::int64_t>{layer.weight.size(2), layer.weight.size(3)}},
          {"strides", list_of(layer.options.stride)},
          {"pads", both_ends(layer.options.padding)},
          {"dilations", list_of(layer.options.dilation)},
          {"group", layer.options.groups}};
}

std::string Exporter::linear(const Linear& layer, const std::string& x, std::int64_t rank,
                             const std::string& path) {
  if (rank == 2) return graph.node("Gemm", factors(layer, x, path), {{"transB", std::int64_t{1}}});
  const auto w = weight(path + "weight", layer.weight);
  const auto turned = graph.node("Transpose", {w}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  const auto y = binary("MatMul", x, turned);
  return layer.bias ? binary("Add", y, weight(path + "bias", layer.bias)) : y;
}

std::string Exporter::linear(const Linear& layer, const Value& x, const std::string& path) {
  return linear(layer, x.name, x.sample.ndim(), path);
}

std::string Exporter::convolution(const Conv2d& layer, const Value& x, const std::string& path) {
  return graph.node("Conv", factors(layer, x.name, path), conv_attributes(layer));
}

std::string Exporter::convolution(const ConvTranspose2d& layer, const Value& x,
                                  const std::string& path) {
  auto attributes = conv_attributes(layer);
  attributes.emplace_back("output_padding", list_of(layer.options.output_padding));
  return graph.node("ConvTranspose", factors(layer, x.name, path), attributes);
}

std::string Exporter::norm(const BatchNorm& layer, const Value& x, const std::string& path) {
  return graph.node(
      "BatchNormalization",
      {x.name, weight(path + "weight", layer.weight), weight(path + "bias", layer.bias),
       weight(path + "running_mean", layer.running_mean),
       weight(path + "running_var", layer.running_var)},
      {{"epsilon", layer.eps}});
}

std::string Exporter::norm(const LayerNorm& layer, const std::string& x, const std::string& path) {
  return graph.node("LayerNormalization",
                    {x, weight(path + "weight", layer.weight), weight(path + "bias", layer.bias)},
                    {{"axis", -layer.weight.ndim()}, {"epsilon", layer.eps}});
}

std::string Exporter::norm(const RMSNorm& layer, const Value& x, const std::string& path) {
  const auto square = graph.node("ReduceMean", {binary("Mul", x.name, x.name)},
                                 {{"axes", std::vector<std::int64_t>{-1}}});
  const auto root = graph.node("Sqrt", {plus(square, layer.eps)});
  return binary("Mul", binary("Div", x.name, root), weight(path + "weight", layer.weight));
}

// ONNX has it from a later set of operators on; instances of one channel per group are the same.
std::string Exporter::norm(const GroupNorm& layer, const Value& x, const std::string& path) {
  const std::vector<float> one(static_cast<std::size_t>(layer.groups), 1), zero(one.size(), 0);
  const auto groups =
      binary("Reshape", x.name, graph.constant(path + "groups", {0, layer.groups, -1}));
  const auto y = graph.node("InstanceNormalization",
                            {groups, graph.constant(path + "one", Shape{layer.groups}, one),
                             graph.constant(path + "zero", Shape{layer.groups}, zero)},
                            {{"epsilon", layer.eps}});
  const auto back = binary("Reshape", y, graph.node("Shape", {x.name}));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.sample.ndim()) - 1, 1);
  sizes[0] = layer.weight.size(0);
  const auto per_channel = [&](const char* name, const Tensor& tensor) {
    return weight(path + name, tensor.reshape(sizes));
  };
  return binary("Add", binary("Mul", back, per_channel("weight", layer.weight)),
                per_channel("bias", layer.bias));
}

std::string Exporter::pool(const AdaptiveAvgPool2d& layer, const Value& x) {
  if (layer.size[0] == 1 && layer.size[1] == 1) return graph.node("GlobalAveragePool", {x.name});
  const auto height = x.sample.size(2), width = x.sample.size(3);
  check<ArgumentError>(height % layer.size[0] == 0 && width % layer.size[1] == 0,
                       "[onnx] AdaptiveAvgPool2d can be written where its size divides the "
                       "image's: {} x {} of {} x {}",
                       layer.size[0], layer.size[1], height, width);
  return graph.node("AveragePool", {x.name},
                    pool_attributes({height / layer.size[0], width / layer.size[1]}, {}));
}

std::string Exporter::activation(const std::string& function, const std::string& x) {
  static const auto* const direct =
      new std::map<std::string, std::pair<std::string, OnnxAttributes>>{
          {"relu", {"Relu", {}}},
          {"sigmoid", {"Sigmoid", {}}},
          {"tanh", {"Tanh", {}}},
          {"leaky_relu", {"LeakyRelu", {{"alpha", 0.01}}}},
          {"elu", {"Elu", {{"alpha", 1.0}}}},
          {"softplus", {"Softplus", {}}},
          {"hard_sigmoid", {"HardSigmoid", {{"alpha", 1.0 / 6}, {"beta", 0.5}}}},
          {"hard_swish", {"HardSwish", {}}},
          {"softmax", {"Softmax", {{"axis", std::int64_t{-1}}}}},
          {"log_softmax", {"LogSoftmax", {{"axis", std::int64_t{-1}}}}}};
  if (const auto found = direct->find(function); found != direct->end())
    return graph.node(found->second.first, {x}, found->second.second);
  if (function == "silu") return binary("Mul", x, graph.node("Sigmoid", {x}));
  if (function == "mish")
    return binary("Mul", x, graph.node("Tanh", {graph.node("Softplus", {x})}));
  if (function == "gelu") {
    const auto inner = graph.node("Erf", {times(x, 1 / std::numbers::sqrt2)});
    return times(binary("Mul", x, plus(inner, 1)), 0.5);
  }
  if (function == "gelu_tanh") {
    const auto cube = binary("Mul", x, binary("Mul", x, x));
    const auto sum = binary("Add", x, times(cube, 0.044715));
    const auto inner = graph.node("Tanh", {times(sum, std::sqrt(2 / std::numbers::pi))});
    return times(binary("Mul", x, plus(inner, 1)), 0.5);
  }
  fail<ArgumentError>("[onnx] the activation {} cannot be written", function);
}

// The mask is for sequences of the example's length.
std::string Exporter::attention(const MultiheadAttention& layer, const Value& x,
                                const std::string& path) {
  const auto length = x.sample.size(1), width = x.sample.size(2), part = width / layer.heads;
  const auto split_shape = graph.constant(path + "split", {0, 0, layer.heads, part});
  const auto split = [&](const Linear& to, const char* name, std::vector<std::int64_t> order) {
    const auto y = linear(to, x.name, 3, path + name);
    return graph.node("Transpose", {binary("Reshape", y, split_shape)},
                      {{"perm", std::move(order)}});
  };
  const auto query = split(*layer.to_query, "to_query.", {0, 2, 1, 3});
  const auto key = split(*layer.to_key, "to_key.", {0, 2, 3, 1});
  const auto value = split(*layer.to_value, "to_value.", {0, 2, 1, 3});
  auto scores = times(binary("MatMul", query, key), 1 / std::sqrt(static_cast<double>(part)));
  if (layer.causal) {
    std::vector<float> mask(static_cast<std::size_t>(length * length), 0);
    for (std::int64_t row = 0; row < length; ++row)
      for (auto column = row + 1; column < length; ++column)
        mask[static_cast<std::size_t>(row * length + column)] =
            -std::numeric_limits<float>::infinity();
    scores = binary("Add", scores, graph.constant(path + "mask", Shape{length, length}, mask));
  }
  const auto shares = graph.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const auto heads = graph.node("Transpose", {binary("MatMul", shares, value)},
                                {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  const auto joined = binary("Reshape", heads, graph.constant(path + "join", {0, 0, width}));
  return linear(*layer.to_out, joined, 3, path + "to_out.");
}

std::string Exporter::block(Module& layer, const Value& x, const std::string& path) {
  const auto inside = [&](const char* name, const Value& from) {
    return write(*child(layer, name), from, path + name + ".");
  };
  const auto attended = inside("attention", inside("norm1", x));
  const Value y{binary("Add", x.name, attended.name), x.sample + attended.sample};
  return binary("Add", y.name, inside("feed_forward", inside("norm2", y)).name);
}

std::string Exporter::residual(Module& layer, const Value& x, const std::string& path) {
  const auto y = write(*child(layer, "path"), x, path + "path.");
  auto* shortcut = child(layer, "shortcut");
  const auto added = shortcut ? write(*shortcut, x, path + "shortcut.").name : x.name;
  return graph.node("Relu", {binary("Add", y.name, added)});
}

std::string Exporter::gpt(GPT& layer, const Value& x, const std::string& path) {
  const auto tokens = write(*child(layer, "tokens"), x, path + "tokens.");
  const auto& positions = as<Embedding>(*child(layer, "positions"))->weight;
  const auto first = ops::narrow(positions, 0, 0, x.sample.size(1)).contiguous();
  Value y{binary("Add", tokens.name, weight(path + "positions.weight", first)),
          tokens.sample + first};
  for (const auto& [name, one] : layer.children())
    if (name != "tokens" && name != "positions") y = write(*one, y, path + name + ".");
  return y.name;
}

std::string Exporter::layer(Module& module, const Value& x, const std::string& path) {
  if (const auto* one = as<Linear>(module)) return linear(*one, x, path);
  if (const auto* one = as<Conv2d>(module)) return convolution(*one, x, path);
  if (const auto* one = as<ConvTranspose2d>(module)) return convolution(*one, x, path);
  if (const auto* one = as<BatchNorm>(module)) return norm(*one, x, path);
  if (const auto* one = as<LayerNorm>(module)) return norm(*one, x.name, path);
  if (const auto* one = as<RMSNorm>(module)) return norm(*one, x, path);
  if (const auto* one = as<GroupNorm>(module)) return norm(*one, x, path);
  if (const auto* one = as<MaxPool2d>(module))
    return graph.node("MaxPool", {x.name}, pool_attributes(one->window, one->options));
  if (const auto* one = as<AvgPool2d>(module)) {
    auto attributes = pool_attributes(one->window, one->options);
    attributes.emplace_back("count_include_pad", std::int64_t{one->options.count_padding});
    return graph.node("AveragePool", {x.name}, attributes);
  }
  if (const auto* one = as<AdaptiveAvgPool2d>(module)) return pool(*one, x);
  if (as<Flatten>(module) != nullptr)
    return graph.node("Flatten", {x.name}, {{"axis", std::int64_t{1}}});
  if (as<Dropout>(module) != nullptr) return x.name;
  if (const auto* one = as<Activation>(module)) return activation(one->function, x.name);
  if (const auto* one = as<Embedding>(module))
    return graph.node("Gather", {weight(path + "weight", one->weight), x.name});
  if (const auto* one = as<MultiheadAttention>(module)) return attention(*one, x, path);
  if (module.type() == "TransformerBlock") return block(module, x, path);
  if (module.type() == "ResidualBlock") return residual(module, x, path);
  if (auto* one = dynamic_cast<GPT*>(&module)) return gpt(*one, x, path);
  fail<ArgumentError>("[onnx] a layer of type {} cannot be written ({})", module.type(), path);
}

Value Exporter::write(Module& module, const Value& x, const std::string& path) {
  if (as<Sequential>(module) == nullptr) return {layer(module, x, path), module.forward(x.sample)};
  auto y = x;
  for (const auto& [name, one] : module.children()) y = write(*one, y, path + name + ".");
  return y;
}

std::vector<std::int64_t> any_batch(const Tensor& sample) {
  auto sizes = sample.shape().sizes();
  std::vector<std::int64_t> result(sizes.begin(), sizes.end());
  result[0] = -1;
  return result;
}

// Pixels to what the model sees, per channel.
std::string scaled(OnnxGraph& graph, const OnnxOptions& options, const Tensor& example) {
  const auto channels = example.size(1);
  check<ArgumentError>(example.ndim() == 4 &&
                           options.scale.size() == static_cast<std::size_t>(channels) &&
                           options.shift.size() == options.scale.size(),
                       "[onnx] scale and shift must have a number per channel of images: {} and {} "
                       "for {}",
                       options.scale.size(), options.shift.size(), example.shape().to_string());
  const Shape shape{channels, 1, 1};
  const auto x =
      graph.node("Cast", {"input"}, {{"to", static_cast<std::int64_t>(OnnxType::float32)}});
  const auto y = graph.node("Mul", {x, graph.constant("input.scale", shape, options.scale)});
  return graph.node("Add", {y, graph.constant("input.shift", shape, options.shift)});
}

}  // namespace

void save_onnx(const std::string& path, Module& module, const Tensor& example,
               const OnnxOptions& options) {
  check<ShapeError>(example.ndim() >= 1, "[onnx] the example must have a batch axis: {}",
                    example.shape().to_string());
  const EvalScope asked(module);
  Exporter exporter;
  auto& graph = exporter.graph;
  std::string first = "input";
  const bool pixels = !options.scale.empty() || !options.shift.empty();
  if (pixels) {
    graph.input("input", OnnxType::uint8, any_batch(example));
    first = scaled(graph, options, example);
  } else {
    graph.input("input", is_floating(example.dtype()) ? OnnxType::float32 : OnnxType::int64,
                any_batch(example));
  }
  const auto result = exporter.write(module, {first, example}, "");
  check<ArgumentError>(is_floating(result.sample.dtype()),
                       "[onnx] the result must be of a floating type: {}",
                       name_of(result.sample.dtype()));
  graph.node("Identity", {result.name}, {}, "output");
  graph.output("output", OnnxType::float32, any_batch(result.sample));
  for (const auto& [key, value] : options.metadata) graph.metadata(key, value);
  const auto bytes = graph.bytes();
  constexpr unsigned kMode = 0666;  // less the umask
  write_file_atomic(path, std::as_bytes(std::span(bytes)), kMode);
}

}  // namespace netcl::nn
