// The layers and networks of netcl.nn.
#include "module_class.h"
#include "netcl/autograd.h"

namespace netcl::python {
namespace {

// A tensor that is a member of a layer; None where the layer has none (bias=False).
template <class Layer, class Class>
void add_tensor(Class& layer, const char* name, Tensor Layer::*member) {
  layer.def_prop_rw(
      name, [member](const Layer& self) { return tensor_or_none(self.*member); },
      [member](Layer& self, Tensor value) {
        if (Node::of(self.*member)) value.set_requires_grad();
        self.*member = std::move(value);
      });
}

template <class Layer>
nb::class_<Layer, nn::Module> with_weights(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Layer, nn::Module> layer(m, name, doc);
  add_tensor(layer, "weight", &Layer::weight);
  if constexpr (requires { &Layer::bias; }) add_tensor(layer, "bias", &Layer::bias);
  return layer;
}

void bind_products(nb::module_& m) {
  with_weights<nn::Linear>(m, "Linear",
                           "x w^T + b, w (out, in).\n\n"
                           ">>> nc.nn.Linear(3, 5).weight.shape\n(5, 3)\n")
      .def(nb::init<std::int64_t, std::int64_t, bool>(), "in_features"_a, "out_features"_a,
           "bias"_a = true);
  with_weights<nn::Conv2d>(m, "Conv2d", "x (N, in, H, W); sizes are numbers or pairs.")
      .def(
          "__init__",
          [](nn::Conv2d* self, std::int64_t in, std::int64_t out, const PairArg& kernel,
             const PairArg& stride, const PairArg& padding, const PairArg& dilation,
             std::int64_t groups, bool bias) {
            new (self) nn::Conv2d(in, out, kernel.pair,
                                  {stride.pair, padding.pair, dilation.pair, groups, {}}, bias);
          },
          "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a = 1, "padding"_a = 0,
          "dilation"_a = 1, "groups"_a = 1, "bias"_a = true);
  with_weights<nn::ConvTranspose2d>(m, "ConvTranspose2d", "The gradient of Conv2d as a layer.")
      .def(
          "__init__",
          [](nn::ConvTranspose2d* self, std::int64_t in, std::int64_t out, const PairArg& kernel,
             const PairArg& stride, const PairArg& padding, const PairArg& output_padding,
             const PairArg& dilation, std::int64_t groups, bool bias) {
            new (self) nn::ConvTranspose2d(
                in, out, kernel.pair,
                {stride.pair, padding.pair, output_padding.pair, dilation.pair, groups}, bias);
          },
          "in_channels"_a, "out_channels"_a, "kernel_size"_a, "stride"_a = 1, "padding"_a = 0,
          "output_padding"_a = 0, "dilation"_a = 1, "groups"_a = 1, "bias"_a = true);
  with_weights<nn::Embedding>(m, "Embedding", "Indices to rows of a table.")
      .def(nb::init<std::int64_t, std::int64_t>(), "num_embeddings"_a, "embedding_dim"_a);
}

void bind_norms(nb::module_& m) {
  auto base = with_weights<nn::BatchNorm>(m, "BatchNorm", "Over the batch, per channel.");
  add_tensor(base, "running_mean", &nn::BatchNorm::running_mean);
  add_tensor(base, "running_var", &nn::BatchNorm::running_var);
  nb::class_<nn::BatchNorm1d, nn::BatchNorm>(m, "BatchNorm1d", "Of (N, C) or (N, C, L).")
      .def(nb::init<std::int64_t, double, double>(), "num_features"_a, "eps"_a = 1e-5,
           "momentum"_a = 0.1);
  nb::class_<nn::BatchNorm2d, nn::BatchNorm>(m, "BatchNorm2d", "Of (N, C, H, W).")
      .def(nb::init<std::int64_t, double, double>(), "num_features"_a, "eps"_a = 1e-5,
           "momentum"_a = 0.1);
  with_weights<nn::LayerNorm>(m, "LayerNorm", "Over the last axes.")
      .def(
          "__init__",
          [](nn::LayerNorm* self, const ShapeArg& shape, double eps) {
            new (self) nn::LayerNorm(shape.sizes, eps);
          },
          "normalized_shape"_a, "eps"_a = 1e-5);
  with_weights<nn::RMSNorm>(m, "RMSNorm", "Over the last axis, without its mean.")
      .def(nb::init<std::int64_t, double>(), "size"_a, "eps"_a = 1e-6);
  with_weights<nn::GroupNorm>(m, "GroupNorm", "Over groups of channels.")
      .def(nb::init<std::int64_t, std::int64_t, double>(), "num_groups"_a, "num_channels"_a,
           "eps"_a = 1e-5);
}

ops::PoolOptions pool_options(const std::optional<PairArg>& stride, const PairArg& padding,
                              bool count_padding) {
  return {stride ? stride->pair : ops::Pair{0, 0}, padding.pair, count_padding};
}

void bind_simple(nb::module_& m) {
  nb::class_<nn::Dropout, nn::Module>(m, "Dropout", "While training only.")
      .def(nb::init<double>(), "p"_a = 0.5)
      .def_ro("p", &nn::Dropout::p);
  nb::class_<nn::MaxPool2d, nn::Module>(m, "MaxPool2d", "The largest of sliding windows.")
      .def(
          "__init__",
          [](nn::MaxPool2d* self, const PairArg& window, const std::optional<PairArg>& stride,
             const PairArg& padding) {
            new (self) nn::MaxPool2d(window.pair, pool_options(stride, padding, true));
          },
          "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0);
  nb::class_<nn::AvgPool2d, nn::Module>(m, "AvgPool2d", "The average of sliding windows.")
      .def(
          "__init__",
          [](nn::AvgPool2d* self, const PairArg& window, const std::optional<PairArg>& stride,
             const PairArg& padding, bool count_padding) {
            new (self) nn::AvgPool2d(window.pair, pool_options(stride, padding, count_padding));
          },
          "kernel_size"_a, "stride"_a = nb::none(), "padding"_a = 0, "count_padding"_a = true);
  nb::class_<nn::AdaptiveAvgPool2d, nn::Module>(m, "AdaptiveAvgPool2d",
                                                "Averages, to a given height and width.")
      .def(
          "__init__",
          [](nn::AdaptiveAvgPool2d* self, const PairArg& size) {
            new (self) nn::AdaptiveAvgPool2d(size.pair);
          },
          "output_size"_a);
  nb::class_<nn::Flatten, nn::Module>(m, "Flatten", "(N, ...) to (N, the rest).").def(nb::init<>());
  nb::class_<nn::Activation, nn::Module>(
      m, "Activation",
      "relu, gelu, gelu_tanh, silu, sigmoid, tanh, leaky_relu, elu, softplus, mish, hard_sigmoid,\n"
      "hard_swish, softmax, log_softmax.")
      .def(nb::init<std::string>(), "function"_a)
      .def_ro("function", &nn::Activation::function);
}

void bind_attention(nb::module_& m) {
  nb::class_<nn::MultiheadAttention, nn::Module>(m, "MultiheadAttention", "Of (N, L, width).")
      .def(nb::init<std::int64_t, std::int64_t, bool, bool>(), "embed_dim"_a, "num_heads"_a,
           "causal"_a = false, "bias"_a = true)
      .def(
          "attend",
          [](nn::MultiheadAttention& self, const Tensor& query, const Tensor& key,
             const Tensor& value, const std::optional<Tensor>& mask) {
            return self.attend(query, key, value, mask.value_or(Tensor()));
          },
          "query"_a, "key"_a, "value"_a, "mask"_a = nb::none(), unlocked(),
          "Of a query (N, L, width) on keys and values (N, S, width).");
  nb::class_<nn::TransformerBlock, nn::Module>(m, "TransformerBlock",
                                               "x + attention(norm(x)), then x + mlp(norm(x)).")
      .def(
          "__init__",
          [](nn::TransformerBlock* self, std::int64_t width, std::int64_t heads,
             std::int64_t hidden, double dropout, bool causal) {
            new (self) nn::TransformerBlock(width, heads, {hidden, dropout, causal});
          },
          "width"_a, "heads"_a, "hidden"_a = 0, "dropout"_a = 0.0, "causal"_a = false);
  nb::class_<nn::GPT, nn::Module>(m, "GPT", "A small language model: indices (N, L) to logits.")
      .def(
          "__init__",
          [](nn::GPT* self, std::int64_t vocabulary, std::int64_t context, std::int64_t layers,
             std::int64_t heads, std::int64_t width, double dropout) {
            new (self) nn::GPT({vocabulary, context, layers, heads, width, dropout});
          },
          "vocabulary"_a = 256, "context"_a = 128, "layers"_a = 4, "heads"_a = 4, "width"_a = 128,
          "dropout"_a = 0.0)
      .def("generate", &nn::GPT::generate, "start"_a, "count"_a, "temperature"_a = 1.0,
           "seed"_a = 0, unlocked(),
           "`count` further indices after `start`; temperature 0 takes the likeliest.");
}

}  // namespace

void bind_layers(nb::module_& parent) {
  nb::module_ m = nb::borrow<nb::module_>(parent.attr("nn"));
  bind_products(m);
  bind_norms(m);
  bind_simple(m);
  bind_attention(m);
  m.def("resnet18", &nn::resnet18, "classes"_a, "channels"_a = 3, "small_images"_a = false,
        unlocked(), "(N, channels, H, W) to logits; small_images: for images of about 32x32.");
  m.def("resnet34", &nn::resnet34, "classes"_a, "channels"_a = 3, "small_images"_a = false,
        unlocked(), "(N, channels, H, W) to logits; small_images: for images of about 32x32.");
  m.def("resnet50", &nn::resnet50, "classes"_a, "channels"_a = 3, "small_images"_a = false,
        unlocked(), "(N, channels, H, W) to logits; small_images: for images of about 32x32.");
}

}  // namespace netcl::python
