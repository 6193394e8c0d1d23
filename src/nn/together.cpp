#include "nn/together.h"

#include <bit>
#include <typeinfo>

#include "netcl/autograd.h"
#include "ops/weight_forms.h"
#include "tensor/following.h"

namespace netcl::nn {
namespace {

// The layer itself, not one that derives from it and may compute something else.
template <class Layer>
const Layer* layer_at(const Layers& layers, std::size_t at) {
  if (at >= layers.size()) return nullptr;
  const auto& module = *layers[at].second;
  return typeid(module) == typeid(Layer) ? static_cast<const Layer*>(&module) : nullptr;
}

ops::Activation activation_of(const Activation& layer) {
  using ops::Activation;
  constexpr std::pair<const char*, Activation> kKnown[] = {{"relu", Activation::relu},
                                                           {"gelu", Activation::gelu},
                                                           {"silu", Activation::silu},
                                                           {"sigmoid", Activation::sigmoid},
                                                           {"tanh", Activation::tanh}};
  for (const auto& [name, activation] : kKnown)
    if (layer.function == name) return activation;
  return Activation::none;
}

// w and b of a convolution, then weight, bias, mean and variance of the norm; b may be missing.
std::vector<Tensor> fold(const Tensors& sources, double eps) {
  const auto &w = sources[0], &weight = sources[1], &bias = sources[2], &mean = sources[3];
  const auto scale = weight * ops::rsqrt(sources[4] + eps);
  const auto shifted = sources.size() > 5 ? sources[5] - mean : -mean;
  return {w * scale.view({w.size(0), 1, 1, 1}), bias + shifted * scale};
}

bool is_foldable(const Conv2d& conv, const BatchNorm& norm) {
  const auto dtype = conv.weight.dtype();
  return !norm.is_training() && !t_following.is_recording() &&
         norm.weight.numel() == conv.weight.size(0) && norm.weight.dtype() == dtype &&
         norm.running_var.dtype() == dtype && (dtype == DType::float32 || dtype == DType::float64);
}

// Filters and bias with the norm in them, made on the spot until they are kept: the first call has
// the bits of all later ones.
std::vector<Tensor> folded(const Conv2d& conv, const BatchNorm& norm) {
  if (!is_foldable(conv, norm)) return {};
  Tensors sources{conv.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var};
  if (conv.bias) sources.push_back(conv.bias);
  const auto eps = norm.eps;
  const auto made = kept_form({"conv_batch_norm",
                               {std::bit_cast<std::int64_t>(eps)},
                               [eps](const Tensors& from) { return fold(from, eps); }},
                              sources);
  return made ? *made : fold(sources, eps);
}

// A relu at `at` with pooling behind it, while a tape records.
const MaxPool2d* pool_behind_relu(const Layers& layers, std::size_t at) {
  const auto* layer = layer_at<Activation>(layers, at);
  const bool is_relu = layer != nullptr && activation_of(*layer) == ops::Activation::relu;
  return is_relu && t_following.is_recording() ? layer_at<MaxPool2d>(layers, at + 1) : nullptr;
}

}  // namespace

LayersTogether layers_together(const Layers& layers, std::size_t first) {
  LayersTogether together;
  together.pool = pool_behind_relu(layers, first);
  if (together.pool != nullptr) {
    together.count = 2;
    return together;
  }
  together.conv = layer_at<Conv2d>(layers, first);
  together.linear = layer_at<Linear>(layers, first);
  if (together.conv == nullptr && together.linear == nullptr) return {};
  auto next = first + 1;
  const auto* norm = layer_at<BatchNorm2d>(layers, next);
  if (norm != nullptr && together.conv != nullptr) {
    together.folded = folded(*together.conv, *norm);
    if (together.folded.empty()) return {};
    ++next;
  }
  const auto* layer = layer_at<Activation>(layers, next);
  if (layer != nullptr && pool_behind_relu(layers, next) == nullptr) {
    together.activation = activation_of(*layer);
    if (together.activation != ops::Activation::none) ++next;
  }
  if (next == first + 1) return {};
  together.count = next - first;
  return together;
}

Tensor LayersTogether::forward(const Tensor& x, const Tensor& residual) const {
  if (pool != nullptr) return ops::relu(ops::max_pool2d(x, pool->window, pool->options));
  if (linear != nullptr) return ops::linear(x, linear->weight, linear->bias, activation, residual);
  auto options = conv->options;
  options.activation = activation;
  if (folded.empty()) return ops::conv2d(x, conv->weight, conv->bias, options, residual);
  return ops::conv2d(x, folded[0], folded[1], options, residual);
}

}  // namespace netcl::nn
