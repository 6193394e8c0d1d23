#include "ops/conv2d/backward.h"

#include "ops/conv2d/host.h"
#include "ops/conv2d/launch.h"
#include "ops/conv2d/samples.h"

namespace netcl::conv {
namespace {

constexpr const char* kData = "conv2d_backward_data";
constexpr const char* kWeights = "conv2d_backward_weights";

struct Steps {
  const std::vector<std::int64_t>&stride, &padding, &dilation;
  std::int64_t groups;
  explicit Steps(const Attributes& attributes)
      : stride(attributes.integers("stride")),
        padding(attributes.integers("padding")),
        dilation(attributes.integers("dilation")),
        groups(attributes.integer("groups")) {}
};

// Walks over all products x * w of the convolution: f(index in x, index in w, index in y).
// Independent of the other files of this folder, like the references that use it.
template <class F>
void for_products(const Shape& x, const Shape& w, const Shape& y, const Steps& steps, F&& f) {
  const auto Kg = w[0] / steps.groups;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t k = 0; k < w[0]; ++k)
      for (std::int64_t c = 0; c < w[1]; ++c)
        for (std::int64_t p = 0; p < y[2]; ++p)
          for (std::int64_t q = 0; q < y[3]; ++q)
            for (std::int64_t r = 0; r < w[2]; ++r)
              for (std::int64_t s = 0; s < w[3]; ++s) {
                const auto h = p * steps.stride[0] + r * steps.dilation[0] - steps.padding[0];
                const auto v = q * steps.stride[1] + s * steps.dilation[1] - steps.padding[1];
                if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                const auto at_x = ((n * x[1] + k / Kg * w[1] + c) * x[2] + h) * x[3] + v;
                const auto at_w = ((k * w[1] + c) * w[2] + r) * w[3] + s;
                const auto at_y = ((n * y[1] + k) * y[2] + p) * y[3] + q;
                f(static_cast<std::size_t>(at_x), static_cast<std::size_t>(at_w),
                  static_cast<std::size_t>(at_y));
              }
}

// ---- with respect to x

std::vector<TensorSpec> infer_data(const OpSpec& spec) {
  check_dtypes(spec, {"dy", "w", "b"});
  const auto s = data_sizes(kData, spec.shape(0), spec.shape(1), spec.attributes);
  check_bias(spec, 2, s.C);
  return {{s.x_shape(), spec.dtype()}};
}

void reference_data(RefCall& call) {
  const auto &dy = call.inputs[0], &w = call.inputs[1];
  auto& dx = call.outputs[0];
  for_products(dx.shape, w.shape, dy.shape, Steps(call.attributes),
               [&](auto x, auto f, auto y) { dx.values[x] += dy.values[y] * w.values[f]; });
  if (!call.has(2)) return;
  const auto plane = static_cast<std::size_t>(dx.shape[2] * dx.shape[3]);
  const auto channels = static_cast<std::size_t>(dx.shape[1]);
  for (std::size_t i = 0; i < dx.values.size(); ++i)
    dx.values[i] += call.inputs[2].values[i / plane % channels];
}

void host_data(const OpCall& call) {
  const auto s = data_sizes(kData, call.inputs[0].shape(), call.inputs[1].shape(), call.attributes);
  host_backward_data(s, call.inputs[0], call.inputs[1], call.has(2) ? call.inputs[2] : Tensor(),
                     call.outputs[0]);
}

std::vector<Tensor> backward_of_data(const OpGradient& g) {
  std::vector<Tensor> result(g.inputs.size());
  if (!g.dy()) return result;
  const auto &dy = g.inputs[0], &w = g.inputs[1];
  if (g.wants(0)) result[0] = forward_cut(g.dy(), w, {dy.size(2), dy.size(3)}, g.attributes);
  if (g.wants(1)) result[1] = backward_weights(g.dy(), dy, {w.size(2), w.size(3)}, g.attributes);
  if (g.wants(2)) result[2] = channel_sums(g.dy());
  return result;
}

// ---- with respect to w

std::vector<TensorSpec> infer_weights(const OpSpec& spec) {
  check_dtypes(spec, {"x", "dy"});
  const auto s = weights_sizes(kWeights, spec.shape(0), spec.shape(1), spec.attributes);
  return {{s.w_shape(), spec.dtype()}};
}

void reference_weights(RefCall& call) {
  const auto &x = call.inputs[0], &dy = call.inputs[1];
  auto& dw = call.outputs[0];
  for_products(x.shape, dw.shape, dy.shape, Steps(call.attributes),
               [&](auto at, auto f, auto y) { dw.values[f] += x.values[at] * dy.values[y]; });
}

void host_weights(const OpCall& call) {
  const auto s =
      weights_sizes(kWeights, call.inputs[0].shape(), call.inputs[1].shape(), call.attributes);
  host_backward_weights(s, call.inputs[0], call.inputs[1], call.outputs[0]);
}

std::vector<Tensor> backward_of_weights(const OpGradient& g) {
  std::vector<Tensor> result(g.inputs.size());
  if (!g.dy()) return result;
  const auto &x = g.inputs[0], &dy = g.inputs[1];
  if (g.wants(0)) result[0] = backward_data(dy, g.dy(), {x.size(2), x.size(3)}, g.attributes);
  if (g.wants(1)) result[1] = forward_cut(x, g.dy(), {dy.size(2), dy.size(3)}, g.attributes);
  return result;
}

}  // namespace

Tensor channel_sums(const Tensor& dy) {
  const auto sum = [](const Tensor& x, std::vector<std::int64_t> axes) {
    return apply("sum", {x}, {{"axes", std::move(axes)}, {"keepdim", false}});
  };
  // First the planes, as they lie: a sum over all three axes would copy dy channel by channel. Sums
  // of planes in half would be rounded, and short planes are not worth a launch.
  constexpr std::int64_t kShortPlane = 16;
  const bool is_wide = compute_dtype(dy.dtype()) == dy.dtype();
  if (!is_wide || dy.size(2) * dy.size(3) < kShortPlane) return sum(dy, {0, 2, 3});
  return sum(sum(dy, {2, 3}), {0});
}

const char* const kConvToleranceReason =
    "a sum of n products of numbers below 1 in the accumulator's precision, in any order: half an "
    "eps per term (the reference rounds as often in float64); sixteen times that for 3x3 filters, "
    "because Winograd's tiles of 4x4 take inputs up to 100 times before the product and sums of 36 "
    "products up to 64 times behind it, which cancel each other in the result";

Tolerance conv_tolerance(std::int64_t terms, std::int64_t R, std::int64_t S) {
  const bool winograd = R == 3 && S == 3;
  return {2, (winograd ? 16 : 1) * (4 + static_cast<double>(terms) / 2)};
}

Tolerance conv_tolerance(const Shape& w) { return conv_tolerance(w[1] * w[2] * w[3], w[2], w[3]); }

Tensor backward_data(const Tensor& dy, const Tensor& w, ops::Pair size,
                     const Attributes& attributes) {
  auto own = shared_attributes(attributes);
  own.set("size", pair_of(size));
  return apply(kData, {dy, w, {}}, own);
}

Tensor backward_weights(const Tensor& x, const Tensor& dy, ops::Pair filter,
                        const Attributes& attributes) {
  auto own = shared_attributes(attributes);
  own.set("filter", pair_of(filter));
  return apply(kWeights, {x, dy}, own);
}

Tensor forward_cut(const Tensor& x, const Tensor& w, ops::Pair size, const Attributes& attributes) {
  auto own = shared_attributes(attributes);
  own.set("activation", std::int64_t{0});
  const auto y = apply("conv2d", {x, w, {}}, own);
  return y.narrow(2, 0, size[0]).narrow(3, 0, size[1]).contiguous();
}

OpDef backward_data_op() {
  OpDef op;
  op.name = kData;
  op.summary = "the gradient of conv2d with respect to x, of the given size; a bias may be added";
  op.dtypes = kFloats;
  op.infer = infer_data;
  op.reference = reference_data;
  op.host = host_data;
  op.backward = backward_of_data;
  op.variants = backward_data_variants();
  op.samples = backward_data_samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto& w = spec.shape(1);
    const auto groups = spec.attributes.integer("groups");
    return conv_tolerance({w[1], w[0] / groups, w[2], w[3]});
  };
  op.tolerance_reason = kConvToleranceReason;
  return op;
}

OpDef backward_weights_op() {
  OpDef op;
  op.name = kWeights;
  op.summary = "the gradient of conv2d with respect to w, for filters of the given size";
  op.dtypes = kFloats;
  op.infer = infer_weights;
  op.reference = reference_weights;
  op.host = host_weights;
  op.backward = backward_of_weights;
  op.variants = backward_weights_variants();
  op.samples = backward_weights_samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto& dy = spec.shape(1);
    const auto filter = spec.attributes.integers("filter");
    return conv_tolerance(dy[0] * dy[2] * dy[3], filter[0], filter[1]);
  };
  op.tolerance_reason = kConvToleranceReason;
  return op;
}

}  // namespace netcl::conv
