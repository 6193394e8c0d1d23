// Products, convolution, pooling, normalisation, shapes: the rest of netcl.ops.
#include "common.h"
#include "netcl/op_info.h"

namespace netcl::python {
namespace {

using OptionalTensor = std::optional<Tensor>;
Tensor or_empty(const OptionalTensor& tensor) { return tensor.value_or(Tensor()); }

ops::Activation activation_of(const std::optional<std::string>& name) {
  static const std::map<std::string, ops::Activation> known{
      {"none", ops::Activation::none},       {"relu", ops::Activation::relu},
      {"gelu", ops::Activation::gelu},       {"silu", ops::Activation::silu},
      {"sigmoid", ops::Activation::sigmoid}, {"tanh", ops::Activation::tanh}};
  if (!name) return ops::Activation::none;
  const auto found = known.find(*name);
  if (found == known.end())
    throw ArgumentError("[activation] it must be none, relu, gelu, silu, sigmoid or tanh: " +
                        *name);
  return found->second;
}

void bind_products(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& w, const OptionalTensor& b,
         const std::optional<std::string>& activation, const OptionalTensor& residual) {
        const auto how = activation_of(activation);
        return ops::linear(x, w, or_empty(b), how, or_empty(residual));
      },
      "x"_a, "w"_a, "b"_a = nb::none(), "activation"_a = nb::none(), "residual"_a = nb::none(),
      unlocked(), "activation(x w^T + b + residual), w (out, in).");
  m.def("bias_add", &ops::bias_add, "x"_a, "bias"_a, unlocked(),
        "x + bias along the channels of (N, C, H, W), else along the last axis.");
  m.def(
      "scaled_dot_product_attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& mask, bool causal,
         double scale) {
        return ops::scaled_dot_product_attention(q, k, v, or_empty(mask), causal, scale);
      },
      "q"_a, "k"_a, "v"_a, "mask"_a = nb::none(), "causal"_a = false, "scale"_a = 0.0, unlocked(),
      "softmax(q k^T * scale + mask) v over the last two axes, without storing the scores. A bool "
      "mask is\n"
      "true where a position takes part, another is added; causal: position i sees 0 ... i only; "
      "scale\n"
      "0: 1 / sqrt of the width.");
  nb::class_<ops::MatmulKernel>(m, "MatmulKernel", "A matrix product compiled for one problem.")
      .def("__call__", &ops::MatmulKernel::operator(), "a"_a, "b"_a, unlocked())
      .def_prop_ro("config", &ops::MatmulKernel::config)
      .def_prop_ro("variant", &ops::MatmulKernel::variant);
  m.def(
      "build_matmul_kernel",
      [](const QueueArg& queue, std::int64_t M, std::int64_t N, std::int64_t K,
         const std::optional<DTypeArg>& dtype, const std::string& variant) {
        const auto on = queue.get();
        const auto type = dtype ? DType(*dtype) : DType::float32;
        Unlocked now;
        return ops::build_matmul_kernel(on, M, N, K, type, variant);
      },
      "queue"_a, "M"_a, "N"_a, "K"_a, "dtype"_a = nb::none(), "variant"_a = "",
      "(M, K) @ (K, N) compiled for one device; the variant is the selector's unless one is named\n"
      "(\"MATMUL_TILED\", \"matmul.tiled\").");
}

void bind_images(nb::module_& m) {
  m.def(
      "conv2d",
      [](const Tensor& x, const Tensor& w, const OptionalTensor& b, const PairArg& stride,
         const PairArg& padding, const PairArg& dilation, std::int64_t groups,
         const std::optional<std::string>& activation, const OptionalTensor& residual) {
        const auto how = activation_of(activation);
        return ops::conv2d(x, w, or_empty(b),
                           {stride.pair, padding.pair, dilation.pair, groups, how},
                           or_empty(residual));
      },
      "x"_a, "w"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
      "groups"_a = 1, "activation"_a = nb::none(), "residual"_a = nb::none(), unlocked(),
      "x (N, C, H, W), w (K, C / groups, R, S); stride, padding and dilation are numbers or "
      "pairs.");
  m.def(
      "conv_transpose2d",
      [](const Tensor& x, const Tensor& w, const OptionalTensor& b, const PairArg& stride,
         const PairArg& padding, const PairArg& output_padding, const PairArg& dilation,
         std::int64_t groups) {
        return ops::conv_transpose2d(
            x, w, or_empty(b),
            {stride.pair, padding.pair, output_padding.pair, dilation.pair, groups});
      },
      "x"_a, "w"_a, "bias"_a = nb::none(), "stride"_a = 1, "padding"_a = 0, "output_padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1, unlocked(),
      "The gradient of conv2d as an op: x (N, C, H, W), w (C, K / groups, R, S).");
  m.def(
      "max_pool2d",
      [](const Tensor& x, const PairArg& window, const std::optional<PairArg>& stride,
         const PairArg& padding) {
        return ops::max_pool2d(x, window.pair,
                               {stride ? stride->pair : ops::Pair{0, 0}, padding.pair, true});
      },
      "x"_a, "window"_a, "stride"_a = nb::none(), "padding"_a = 0, unlocked(),
      "The largest of sliding windows of (N, C, H, W); the stride is the window unless given.");
  m.def(
      "avg_pool2d",
      [](const Tensor& x, const PairArg& window, const std::optional<PairArg>& stride,
         const PairArg& padding, bool count_padding) {
        return ops::avg_pool2d(
            x, window.pair, {stride ? stride->pair : ops::Pair{0, 0}, padding.pair, count_padding});
      },
      "x"_a, "window"_a, "stride"_a = nb::none(), "padding"_a = 0, "count_padding"_a = true,
      unlocked(),
      "The average of sliding windows of (N, C, H, W); the stride is the window unless given.");
  m.def(
      "adaptive_avg_pool2d",
      [](const Tensor& x, const PairArg& size) { return ops::adaptive_avg_pool2d(x, size.pair); },
      "x"_a, "size"_a, unlocked(),
      "The averages of as many windows as make the given height and width.");
  m.def(
      "adaptive_max_pool2d",
      [](const Tensor& x, const PairArg& size) { return ops::adaptive_max_pool2d(x, size.pair); },
      "x"_a, "size"_a, unlocked(),
      "The largest of as many windows as make the given height and width.");
  m.def(
      "upsample_nearest",
      [](const Tensor& x, const PairArg& size) { return ops::upsample_nearest(x, size.pair); },
      "x"_a, "size"_a, unlocked(), "Images of another height and width, of the nearest pixels.");
  m.def(
      "upsample_bilinear",
      [](const Tensor& x, const PairArg& size, bool align_corners) {
        return ops::upsample_bilinear(x, size.pair, align_corners);
      },
      "x"_a, "size"_a, "align_corners"_a = false, unlocked(),
      "Images of another height and width, interpolated between four pixels.");
  m.def(
      "pad",
      [](const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& padding,
         double value) {
        std::vector<ops::Pair> pairs;
        for (const auto& [before, after] : padding) pairs.push_back({before, after});
        return ops::pad(x, pairs, value);
      },
      "x"_a, "padding"_a, "value"_a = 0.0, unlocked(), "(before, after) per axis.");
}

void bind_norms(nb::module_& m) {
  m.def(
      "batch_norm_train",
      [](const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
        const auto result = ops::batch_norm_train(x, scale, shift, eps);
        return std::vector<Tensor>{result.y, result.mean, result.inverse_deviation};
      },
      "x"_a, "scale"_a, "shift"_a, "eps"_a = 1e-5, unlocked(),
      "Mean 0 and variance 1 per channel of the batch (N, C, ...), times scale plus shift; also "
      "the mean\n"
      "and the inverse deviation.");
  m.def("batch_norm", &ops::batch_norm, "x"_a, "scale"_a, "shift"_a, "mean"_a, "variance"_a,
        "eps"_a = 1e-5, "fuse_relu"_a = false, unlocked(),
        "(x - mean) / sqrt(variance + eps) * scale + shift per channel of (N, C, ...).");
  m.def(
      "layer_norm",
      [](const Tensor& x, const OptionalTensor& scale, const OptionalTensor& shift, double eps) {
        return ops::layer_norm(x, or_empty(scale), or_empty(shift), eps);
      },
      "x"_a, "scale"_a = nb::none(), "shift"_a = nb::none(), "eps"_a = 1e-5, unlocked(),
      "Mean 0 and variance 1 over the last axes, as many as scale has.");
  m.def(
      "rms_norm",
      [](const Tensor& x, const OptionalTensor& scale, double eps) {
        return ops::rms_norm(x, or_empty(scale), eps);
      },
      "x"_a, "scale"_a = nb::none(), "eps"_a = 1e-6, unlocked(),
      "Mean square 1 over the last axes, as many as scale has.");
  m.def(
      "group_norm",
      [](const Tensor& x, std::int64_t groups, const OptionalTensor& scale,
         const OptionalTensor& shift,
         double eps) { return ops::group_norm(x, groups, or_empty(scale), or_empty(shift), eps); },
      "x"_a, "groups"_a, "scale"_a = nb::none(), "shift"_a = nb::none(), "eps"_a = 1e-5, unlocked(),
      "Mean 0 and variance 1 over the channels of each group of (N, C, ...).");
}

void bind_shapes(nb::module_& m) {
  m.def(
      "reshape",
      [](const Tensor& x, const ShapeArg& sizes) { return ops::reshape(x, sizes.sizes); }, "x"_a,
      "shape"_a, unlocked(), "The same elements in another shape; one size may be -1.");
  m.def("transpose", &ops::transpose, "x"_a, "a"_a = -2, "b"_a = -1, unlocked(),
        "Two axes exchanged; a view.");
  m.def("permute", &ops::permute, "x"_a, "axes"_a, unlocked(),
        "The axes in another order; a view.");
  m.def(
      "expand", [](const Tensor& x, const ShapeArg& shape) { return ops::expand(x, shape); }, "x"_a,
      "shape"_a, unlocked(), "Axes of size 1 repeated; a view.");
  m.def("narrow", &ops::narrow, "x"_a, "axis"_a, "start"_a, "length"_a, unlocked(),
        "A part of one axis; a view.");
  m.def("split", &ops::split, "x"_a, "sizes"_a, "axis"_a = 0, unlocked(),
        "Parts of the given sizes along an axis; views.");
  m.def("concat", &ops::concat, "tensors"_a, "axis"_a = 0, unlocked(),
        "One after the other along an axis.\n\n"
        ">>> nc.ops.concat([nc.Tensor([1.0]), nc.Tensor([2.0, 3.0])]).tolist()\n[1.0, 2.0, 3.0]\n");
  m.def("stack", &ops::stack, "tensors"_a, "axis"_a = 0, unlocked(),
        "Tensors of one shape along a new axis.");
  m.def("scatter_add", &ops::scatter_add, "x"_a, "axis"_a, "indices"_a, "source"_a, unlocked(),
        "x with the source added at the places that gather would read; equal places add up.");
  m.def("index_add", &ops::index_add, "x"_a, "axis"_a, "indices"_a, "source"_a, unlocked(),
        "x with slices of the source added at the indices of an axis; equal ones add up.");
  m.def("embedding", &ops::embedding, "indices"_a, "table"_a, unlocked(), "Rows of the table.");
  m.def(
      "one_hot",
      [](const Tensor& indices, std::int64_t classes, const std::optional<DTypeArg>& dtype) {
        return ops::one_hot(indices, classes, dtype ? DType(*dtype) : DType::float32);
      },
      "indices"_a, "classes"_a, "dtype"_a = nb::none(), unlocked(),
      "A row of zeros with a 1 at its index, for each index.");
}

void bind_info(nb::module_& m) {
  nb::class_<OpInfo>(m, "OpInfo", "An op: its dtypes, kernels and tolerance.")
      .def_ro("name", &OpInfo::name)
      .def_ro("summary", &OpInfo::summary)
      .def_ro("dtypes", &OpInfo::dtypes)
      .def_ro("variants", &OpInfo::variants)
      .def_ro("has_gradient", &OpInfo::has_gradient)
      .def_ro("is_view", &OpInfo::is_view)
      .def_ro("tolerance", &OpInfo::tolerance);
  m.def("list_ops", &list_ops, "What there is.");
  m.def(
      "register_op_kernel",
      [](const std::string& op, const std::string& name, nb::object run) {
        const Callback callback(std::move(run));
        register_op_kernel(op, name,
                           [callback](const Queue& queue, const std::vector<Tensor>& inputs,
                                      const std::vector<Tensor>& outputs) {
                             nb::gil_scoped_acquire lock;
                             callback.function()(queue_to_python(queue), nb::cast(inputs),
                                                 nb::cast(outputs));
                           });
      },
      "op"_a, "name"_a, "run"_a,
      "run(queue, inputs, outputs) fills the outputs when a rule of the selector names it.");
}

}  // namespace

void bind_more_ops(nb::module_& parent) {
  nb::module_ m = nb::borrow<nb::module_>(parent.attr("ops"));
  bind_products(m);
  bind_images(m);
  bind_norms(m);
  bind_shapes(m);
  bind_info(m);
}

}  // namespace netcl::python
