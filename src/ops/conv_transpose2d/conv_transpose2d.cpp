// conv_transpose2d: the gradient of conv2d with respect to its input, as an op of its own with a
// bias. It is computed by conv2d_backward_data, in which x takes the place of dy.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/conv2d/backward.h"
#include "ops/conv2d/host.h"
#include "ops/conv2d/launch.h"
#include "ops/registry.h"

namespace netcl {
namespace {

using namespace conv;  // NOLINT: the family's own

constexpr const char* kName = "conv_transpose2d";

// Of one axis of the result.
std::int64_t result_size(const OpSpec& spec, std::size_t axis) {
  const auto& a = spec.attributes;
  const auto stride = a.integers("stride")[axis], padding = a.integers("padding")[axis];
  const auto dilation = a.integers("dilation")[axis];
  const auto more = a.integers("output_padding")[axis];
  const auto size = spec.shape(0)[static_cast<std::int64_t>(axis) + 2];
  const auto taps = spec.shape(1)[static_cast<std::int64_t>(axis) + 2];
  constexpr auto kFar = std::int64_t{1} << 30;
  for (const auto value : {stride, padding, dilation, size, taps, more})
    check<ShapeError>(value < kFar, "[{}] sizes along one axis must be below 2^30: {}", kName,
                      value);
  check<ShapeError>(taps >= 1 && size >= 1,
                    "[{}] the image and the filter must have at least one pixel: {} and {}", kName,
                    size, taps);
  check<ArgumentError>(more >= 0 && more < std::max(stride, dilation),
                       "[{}] output_padding must be at least 0 and smaller than the stride or the "
                       "dilation: {} for stride {}, dilation {}",
                       kName, more, stride, dilation);
  const auto result = (size - 1) * stride - 2 * padding + dilation * (taps - 1) + more + 1;
  check<ShapeError>(result >= 1,
                    "[{}] the padding must leave something of the result: {} with padding {}",
                    kName, result, padding);
  return result;
}

Attributes data_attributes(const Attributes& attributes, const Shape& result) {
  auto own = shared_attributes(attributes);
  own.set("size", std::vector<std::int64_t>{result[2], result[3]});
  return own;
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  check_dtypes(spec, {"x", "w", "b"});
  const auto &x = spec.shape(0), &w = spec.shape(1);
  check_rank4(kName, "x", x);
  check_rank4(kName, "w", w);
  const auto groups = read_attributes(kName, spec.attributes).groups;
  check<ArgumentError>(spec.attributes.integers("output_padding").size() == 2,
                       "[{}] output_padding must have two values", kName);
  check<ShapeError>(x[1] == w[0], "[{}] w must have a filter for every channel of x: {} for {}",
                    kName, w[0], x[1]);
  check<ShapeError>(x[1] % groups == 0, "[{}] groups must divide the channels of x: {} of {}",
                    kName, groups, x[1]);
  const Shape result{x[0], checked_multiply(w[1], groups, "channels"), result_size(spec, 0),
                     result_size(spec, 1)};
  check_bias(spec, 2, result[1]);
  data_sizes(kName, x, w, data_attributes(spec.attributes, result));
  return {{result, spec.dtype()}};
}

// Every input adds its multiple of the filter to the result.
void reference(RefCall& call) {
  const auto &x = call.inputs[0], &w = call.inputs[1];
  auto& y = call.outputs[0];
  const auto stride = call.attributes.integers("stride");
  const auto padding = call.attributes.integers("padding");
  const auto dilation = call.attributes.integers("dilation");
  const auto C = x.shape[1], Kg = w.shape[1], Cg = C / call.attributes.integer("groups");
  const auto K = y.shape[1], H = y.shape[2], W = y.shape[3];
  if (call.has(2))
    for (std::size_t i = 0; i < y.values.size(); ++i)
      y.values[i] =
          call.inputs[2].values[i / static_cast<std::size_t>(H * W) % static_cast<std::size_t>(K)];
  std::size_t from = 0;
  for (std::int64_t n = 0; n < x.shape[0]; ++n)
    for (std::int64_t c = 0; c < C; ++c)
      for (std::int64_t h = 0; h < x.shape[2]; ++h)
        for (std::int64_t v = 0; v < x.shape[3]; ++v, ++from)
          for (std::int64_t k = 0; k < Kg; ++k)
            for (std::int64_t r = 0; r < w.shape[2]; ++r)
              for (std::int64_t s = 0; s < w.shape[3]; ++s) {
                const auto p = h * stride[0] + r * dilation[0] - padding[0];
                const auto q = v * stride[1] + s * dilation[1] - padding[1];
                if (p < 0 || p >= H || q < 0 || q >= W) continue;
                const auto to = ((n * K + c / Cg * Kg + k) * H + p) * W + q;
                const auto weight = ((c * Kg + k) * w.shape[2] + r) * w.shape[3] + s;
                y.values[static_cast<std::size_t>(to)] +=
                    x.values[from] * w.values[static_cast<std::size_t>(weight)];
              }
}

void run(const OpCall& call) {
  call_op_into(find_op("conv2d_backward_data"), call.inputs,
               data_attributes(call.attributes, call.outputs[0].shape()), call.outputs);
}

std::vector<Tensor> backward(const OpGradient& g) {
  std::vector<Tensor> result(g.inputs.size());
  if (!g.dy()) return result;
  const auto &x = g.inputs[0], &w = g.inputs[1];
  if (g.wants(0)) result[0] = forward_cut(g.dy(), w, {x.size(2), x.size(3)}, g.attributes);
  if (g.wants(1)) result[1] = backward_weights(g.dy(), x, {w.size(2), w.size(3)}, g.attributes);
  if (g.wants(2)) result[2] = channel_sums(g.dy());
  return result;
}

struct Sample {
  const char* id;
  Shape x, w;
  ops::ConvTranspose2dOptions options = {};
  bool bias = true;
};

std::vector<OpSample> samples() {
  using P = ops::Pair;
  const Sample all[] = {
      {"one", {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"3x3", {1, 2, 4, 5}, {2, 3, 3, 3}},
      {"3x3_padded", {2, 3, 5, 4}, {3, 2, 3, 3}, {.padding = P{1, 1}}, false},
      {"2x2_stride2", {1, 3, 4, 5}, {3, 5, 2, 2}, {.stride = P{2, 2}}},
      {"4x4_stride2_pad1", {1, 4, 5, 5}, {4, 3, 4, 4}, {.stride = P{2, 2}, .padding = P{1, 1}}},
      {"3x3_stride2_output_padding",
       {1, 2, 4, 3},
       {2, 4, 3, 3},
       {.stride = P{2, 2}, .padding = P{1, 1}, .output_padding = P{1, 1}}},
      {"stride_beyond_filter", {1, 2, 3, 4}, {2, 2, 2, 1}, {.stride = P{3, 2}}},
      {"dilated", {1, 2, 5, 4}, {2, 3, 3, 2}, {.dilation = P{2, 3}}},
      {"dilated_output_padding",
       {1, 2, 4, 4},
       {2, 2, 3, 3},
       {.output_padding = P{1, 1}, .dilation = P{2, 2}}},
      {"asymmetric",
       {2, 4, 5, 6},
       {4, 3, 2, 3},
       {.stride = P{1, 3}, .padding = P{0, 1}, .output_padding = P{0, 2}, .groups = 2}},
      {"1x1", {1, 5, 3, 4}, {5, 7, 1, 1}},
      {"1x1_stride2", {1, 3, 3, 4}, {3, 2, 1, 1}, {.stride = P{2, 2}}, false},
      {"groups2", {1, 4, 5, 5}, {4, 3, 3, 3}, {.padding = P{1, 1}, .groups = 2}},
      {"depthwise", {1, 3, 4, 6}, {3, 1, 3, 3}, {.stride = P{2, 2}, .groups = 3}},
      {"filters_17", {1, 3, 4, 9}, {3, 17, 3, 3}, {.stride = P{2, 1}, .padding = P{1, 1}}},
      {"primes", {2, 7, 5, 11}, {7, 13, 3, 5}, {.stride = P{2, 2}, .padding = P{1, 2}}},
      {"16x10x10", {1, 16, 10, 10}, {16, 8, 4, 4}, {.stride = P{2, 2}, .padding = P{1, 1}}},
      {"no_batch", {0, 2, 3, 3}, {2, 3, 3, 3}},
      {"no_channels", {2, 0, 3, 3}, {0, 3, 3, 3}},
      {"one_row", {1, 2, 1, 7}, {2, 3, 3, 3}, {.padding = P{1, 1}}},
      {"one_column", {1, 2, 7, 1}, {2, 3, 3, 3}, {.padding = P{1, 1}}},
      {"1x1_primes", {3, 7, 5, 3}, {7, 11, 1, 1}},
      {"2x2_stride2_17x15", {1, 1, 17, 15}, {1, 2, 2, 2}, {.stride = P{2, 2}}},
      {"3x3_16x16", {1, 2, 16, 16}, {2, 1, 3, 3}, {.padding = P{1, 1}}, false},
      {"batch5", {5, 2, 3, 3}, {2, 1, 3, 3}, {}, false},
      {"filters_1", {2, 5, 4, 4}, {5, 1, 3, 3}, {.padding = P{1, 1}}},
      {"channels_33", {1, 33, 3, 2}, {33, 2, 3, 3}, {.padding = P{1, 1}}},
      {"channels_17_stride2", {1, 17, 3, 3}, {17, 15, 2, 2}, {.stride = P{2, 2}}},
      {"groups3_of_9", {1, 9, 4, 3}, {9, 2, 3, 3}, {.padding = P{1, 1}, .groups = 3}},
      {"depthwise_padded", {2, 5, 6, 4}, {5, 1, 3, 3}, {.padding = P{1, 1}, .groups = 5}},
      {"depthwise_multiplier",
       {1, 4, 3, 5},
       {4, 2, 3, 3},
       {.stride = P{2, 2}, .padding = P{1, 1}, .output_padding = P{1, 1}, .groups = 4}},
  };
  std::vector<OpSample> samples;
  for (const auto& one : all) {
    const auto& o = one.options;
    samples.push_back({one.id,
                       {{one.x}, {one.w}, {.shape = {one.w[1] * o.groups}, .present = one.bias}},
                       {{"stride", pair_of(o.stride)},
                        {"padding", pair_of(o.padding)},
                        {"output_padding", pair_of(o.output_padding)},
                        {"dilation", pair_of(o.dilation)},
                        {"groups", o.groups}}});
  }
  return samples;
}

}  // namespace

std::vector<OpDef> ops_of_conv_transpose2d() {
  OpDef op;
  op.name = kName;
  op.summary = "transposed 2-D convolution of x (N, C, H, W) with w (C, K / groups, R, S), bias";
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = reference;
  op.host = run;
  op.backward = backward;
  OpVariant gradient{"conv_transpose2d.backward_data", ""};
  gradient.run = [](const OpCall& call, const VariantRun&) { run(call); };
  op.variants = {gradient};
  op.samples = samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto& w = spec.shape(1);
    return conv_tolerance({w[1], w[0] / spec.attributes.integer("groups"), w[2], w[3]});
  };
  op.tolerance_reason = kConvToleranceReason;
  return {op};
}

namespace ops {

Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& b,
                        const ConvTranspose2dOptions& options) {
  return apply(kName, {x, w, b},
               {{"stride", conv::pair_of(options.stride)},
                {"padding", conv::pair_of(options.padding)},
                {"output_padding", conv::pair_of(options.output_padding)},
                {"dilation", conv::pair_of(options.dilation)},
                {"groups", options.groups}});
}

}  // namespace ops
}  // namespace netcl
