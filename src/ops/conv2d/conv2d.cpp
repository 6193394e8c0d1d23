// conv2d: y = activation(conv(x, w) + b + residual).
#include <cmath>

#include "base/check.h"
#include "ops/activation.h"
#include "ops/conv2d/backward.h"
#include "ops/conv2d/host.h"
#include "ops/conv2d/launch.h"
#include "ops/conv2d/samples.h"
#include "ops/registry.h"

namespace netcl {
namespace {

using namespace conv;  // NOLINT: the family's own
using ops::Activation;

std::vector<TensorSpec> infer(const OpSpec& spec) {
  check_dtypes(spec, {"x", "w", "b", "residual"});
  const auto s = forward_sizes("conv2d", spec.shape(0), spec.shape(1), spec.attributes);
  check_bias(spec, 2, s.K);
  check_residual(spec, s.y_shape());
  const auto activation = spec.attributes.integer("activation");
  check<ArgumentError>(activation >= 0 && activation <= 5,
                       "[conv2d] the activation must be one of ops::Activation: {}", activation);
  return {{s.y_shape(), spec.dtype()}};
}

double activated(double x, std::int64_t activation) {
  switch (static_cast<Activation>(activation)) {
    case Activation::relu:
      return x <= 0 ? 0 : x;
    case Activation::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}

// The definition: every output looks at every tap.
void reference(RefCall& call) {
  const auto& x = call.inputs[0];
  const auto& w = call.inputs[1];
  auto& y = call.outputs[0];
  const auto stride = call.attributes.integers("stride");
  const auto padding = call.attributes.integers("padding");
  const auto dilation = call.attributes.integers("dilation");
  const auto groups = call.attributes.integer("groups");
  const auto N = x.shape[0], C = x.shape[1], H = x.shape[2], W = x.shape[3];
  const auto K = w.shape[0], Cg = w.shape[1], R = w.shape[2], S = w.shape[3];
  const auto P = y.shape[2], Q = y.shape[3];
  std::size_t at = 0;
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t p = 0; p < P; ++p)
        for (std::int64_t q = 0; q < Q; ++q) {
          double sum = call.has(2) ? call.inputs[2].values[static_cast<std::size_t>(k)] : 0;
          for (std::int64_t c = 0; c < Cg; ++c)
            for (std::int64_t r = 0; r < R; ++r)
              for (std::int64_t s = 0; s < S; ++s) {
                const auto h = p * stride[0] + r * dilation[0] - padding[0];
                const auto v = q * stride[1] + s * dilation[1] - padding[1];
                if (h < 0 || h >= H || v < 0 || v >= W) continue;
                const auto channel = k / (K / groups) * Cg + c;
                sum += x.values[static_cast<std::size_t>(((n * C + channel) * H + h) * W + v)] *
                       w.values[static_cast<std::size_t>(((k * Cg + c) * R + r) * S + s)];
              }
          if (call.has(3)) sum += call.inputs[3].values[at];
          y.values[at++] = activated(sum, call.attributes.integer("activation"));
        }
}

void set_axes(KernelProblem& problem, const char* both, const char* h, const char* w,
              std::int64_t on_h, std::int64_t on_w) {
  if (on_h == on_w) {
    problem.attributes[both] = on_h;
  } else {
    problem.attributes[h] = on_h;
    problem.attributes[w] = on_w;
  }
}

KernelProblem problem(const OpCall& call) {
  const auto s = sizes_of_forward(call);
  KernelProblem problem{"conv2d", {s.x_shape(), s.w_shape()}, call.dtype(), {}};
  set_axes(problem, "stride", "stride_h", "stride_w", s.stride_h, s.stride_w);
  set_axes(problem, "padding", "padding_h", "padding_w", s.padding_h, s.padding_w);
  set_axes(problem, "dilation", "dilation_h", "dilation_w", s.dilation_h, s.dilation_w);
  problem.attributes["groups"] = s.groups;
  return problem;
}

void host(const OpCall& call) {
  host_forward(sizes_of_forward(call), call.inputs[0], call.inputs[1],
               call.has(2) ? call.inputs[2] : Tensor(), call.has(3) ? call.inputs[3] : Tensor(),
               call.outputs[0], static_cast<Activation>(call.attributes.integer("activation")));
}

// dy before the activation; what gelu and silu were given is computed again rather than kept.
Tensor before_activation(const OpGradient& g) {
  return activation_backward(static_cast<int>(g.attributes.integer("activation")), g, [&] {
    auto attributes = g.attributes;
    attributes.set("activation", std::int64_t{0});
    return apply("conv2d", g.inputs, attributes);
  });
}

std::vector<Tensor> backward(const OpGradient& g) {
  std::vector<Tensor> result(g.inputs.size());
  if (!g.dy()) return result;
  const auto dy = before_activation(g);
  const auto &x = g.inputs[0], &w = g.inputs[1];
  if (g.wants(0)) result[0] = backward_data(dy, w, {x.size(2), x.size(3)}, g.attributes);
  if (g.wants(1)) result[1] = backward_weights(x, dy, {w.size(2), w.size(3)}, g.attributes);
  if (g.wants(2)) result[2] = channel_sums(dy);
  if (g.wants(3)) result[3] = dy;
  return result;
}

Tolerance tolerance(const OpSpec& spec) { return conv_tolerance(spec.shape(1)); }

OpDef forward_op() {
  OpDef op;
  op.name = "conv2d";
  op.summary =
      "2-D convolution of x (N, C, H, W) with w (K, C / groups, R, S), bias, residual, activation";
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = reference;
  op.host = host;
  op.backward = backward;
  op.saves = saved_by_product;
  op.variants = forward_variants();
  op.problem = problem;
  op.samples = forward_samples;
  op.tuning = forward_tuning;
  op.tolerance = tolerance;
  op.tolerance_reason = kConvToleranceReason;
  return op;
}

}  // namespace

std::vector<OpDef> ops_of_conv2d() {
  return {forward_op(), backward_data_op(), backward_weights_op()};
}

}  // namespace netcl
