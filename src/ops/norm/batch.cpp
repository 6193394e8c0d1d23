// Batch normalisation: with the statistics of the batch (training) or given ones (inference).
#include "ops/norm/batch.h"

#include <cmath>

#include "base/check.h"
#include "base/format.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace netcl {

BatchPlan plan_batch(const Shape& shape) {
  BatchPlan plan{shape[0], shape[1], 1};
  for (std::int64_t i = 2; i < shape.rank(); ++i) plan.span *= shape[i];
  return plan;
}

namespace {

constexpr const char* kPath = "ops/norm/batch.cl";
constexpr const char* kVectorPath = "ops/norm/batch_vectors.cl";

// ---- validation

void check_x(const OpSpec& spec) {
  check_floating(spec);
  const auto& shape = spec.shape(0);
  check<ShapeError>(shape.rank() >= 2 && shape.rank() <= 5,
                    "[{}] x must be (N, C, ...) of rank 2 to 5: {}", spec.op.name,
                    shape.to_string());
}

void check_channel(const OpSpec& spec, std::size_t input, const char* what, DType dtype) {
  const auto channels = spec.shape(0)[1];
  if (!spec.has(input) || !(spec.shape(input) == Shape{channels}))
    fail<ShapeError>("[{}] {} must have one element per channel, ({},): {}", spec.op.name, what,
                     channels, spec.has(input) ? spec.shape(input).to_string() : "none");
  check<DtypeError>(spec.dtype(input) == dtype, "[{}] {} must be {}: {}", spec.op.name, what,
                    name_of(dtype), name_of(spec.dtype(input)));
}

std::vector<TensorSpec> infer_train(const OpSpec& spec) {
  check_x(spec);
  check_channel(spec, 1, "scale", spec.dtype());
  check_channel(spec, 2, "shift", spec.dtype());
  check<ShapeError>(plan_batch(spec.shape(0)).count() > 0 || spec.shape(0)[1] == 0,
                    "[{}] a batch without elements has no statistics: {}", spec.op.name,
                    spec.shape(0).to_string());
  const TensorSpec statistics{Shape{spec.shape(0)[1]}, compute_dtype(spec.dtype())};
  return {{spec.shape(0), spec.dtype()}, statistics, statistics};
}

std::vector<TensorSpec> infer_inference(const OpSpec& spec) {
  check_x(spec);
  check_channel(spec, 1, "scale", spec.dtype());
  check_channel(spec, 2, "shift", spec.dtype());
  check_channel(spec, 3, "mean", compute_dtype(spec.dtype()));
  check_channel(spec, 4, "variance", compute_dtype(spec.dtype()));
  return {{spec.shape(0), spec.dtype()}};
}

// Inputs x, scale, mean, inverse_deviation, dy.
std::vector<TensorSpec> infer_backward(const OpSpec& spec) {
  check_x(spec);
  check_channel(spec, 1, "scale", spec.dtype());
  check_channel(spec, 2, "mean", compute_dtype(spec.dtype()));
  check_channel(spec, 3, "inverse_deviation", compute_dtype(spec.dtype()));
  check_same(spec, 0, 4);
  const TensorSpec parameter{Shape{spec.shape(0)[1]}, spec.dtype()};
  return {{spec.shape(0), spec.dtype()}, parameter, parameter};
}

// ---- OpenCL

// Neighbours that a work-item of batch.cl owns: on a GPU the next one belongs to the next item.
std::int64_t length_of(const OpCall& call) { return device_profile(call.queue).is_cpu ? 16 : 1; }

KernelPtr kernel_of(const OpCall& call, const char* name, Team team) {
  return team_kernel(call.queue, kPath, name, call.dtype(), team, 0,
                     define("LENGTH", length_of(call)));
}

OpArgs& channel_sizes(OpArgs& args, const BatchPlan& plan) {
  return args.value(plan.outer).value(plan.channels).value(plan.span);
}
OpArgs& element_sizes(OpArgs& args, const OpCall& call, const BatchPlan& plan) {
  return args.value(call.inputs[0].numel()).value(plan.channels).value(plan.span);
}

// ---- CPUs: rows of neighbours that share a channel, in vectors

bool takes_vectors(const OpCall& call, Team team) {
  return team == Team::item && device_profile(call.queue).is_cpu;
}

void enqueue_vectors(const OpCall& call, const char* name, OpArgs args, const RowPlan& rows) {
  enqueue_blocks(call.queue, vector_kernel(call.queue, kVectorPath, name, call.dtype()),
                 std::move(args), rows);
}

// The rows of x: of `span` elements, or with span 1 of one element of each channel.
RowPlan element_rows(const BatchPlan& plan) {
  return plan.span == 1 ? RowPlan{plan.outer, plan.channels, 1}
                        : RowPlan{plan.outer * plan.channels, plan.span, 1};
}
OpArgs& row_sizes(OpArgs& args, const BatchPlan& plan) {
  return args.value(element_rows(plan).outer).value(plan.channels).value(plan.span);
}

RowPlan rows_of(const OpCall& call) {
  const auto plan = plan_batch(call.inputs[0].shape());
  return {plan.channels, plan.count(), 1};
}

void run_train(const OpCall& call, Team team) {
  const auto plan = plan_batch(call.inputs[0].shape());
  OpArgs statistics;
  statistics.tensor(call.inputs[0]).tensor(call.outputs[1]).tensor(call.outputs[2]);
  channel_sizes(statistics, plan).number(call.attributes.number("eps"), call.dtype());
  const bool vectors = takes_vectors(call, team);
  if (vectors)
    enqueue_vectors(call, "batch_statistics", std::move(statistics),
                    {plan.channels, plan.count(), 1});
  else
    enqueue_teams(call.queue, kernel_of(call, "batch_statistics", team), statistics, team,
                  plan.channels);
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  args.tensor(call.outputs[1]).tensor(call.outputs[2]).tensor(call.outputs[0]);
  if (vectors) {
    row_sizes(args, plan);
    return enqueue_vectors(call, "batch_apply", std::move(args), element_rows(plan));
  }
  element_sizes(args, call, plan);
  enqueue_items(call.queue, kernel_of(call, "batch_apply", Team::item), args,
                static_cast<std::int64_t>(ceil_div(call.inputs[0].numel(), length_of(call))));
}

void run_inference(const OpCall& call, const char* kernel, std::int64_t per_item) {
  const auto plan = plan_batch(call.inputs[0].shape());
  const bool vectors = takes_vectors(call, Team::item);
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  args.tensor(call.outputs[0]);
  vectors ? row_sizes(args, plan) : element_sizes(args, call, plan);
  args.value(static_cast<std::int32_t>(call.attributes.flag("fuse_relu") ? 1 : 0));
  args.number(call.attributes.number("eps"), call.dtype());
  if (vectors) return enqueue_vectors(call, "batch_folded", std::move(args), element_rows(plan));
  enqueue_items(call.queue, kernel_of(call, kernel, Team::item), args,
                static_cast<std::int64_t>(ceil_div(call.inputs[0].numel(), per_item)));
}

void run_backward(const OpCall& call, Team team) {
  const auto& x = call.inputs[0];
  const auto plan = plan_batch(x.shape());
  if (x.numel() == 0) {
    for (const auto& output : call.outputs)
      output.copy_from(Tensor::from_shape(call.queue, output.shape(), output.dtype()));
    return;
  }
  const auto sums = Tensor::empty(call.queue, Shape{2, plan.channels}, call.inputs[2].dtype());
  OpArgs first;
  first.tensor(x).tensor(call.inputs[2]).tensor(call.inputs[3]).tensor(call.inputs[4]);
  first.tensor(call.outputs[1]).tensor(call.outputs[2]).tensor(sums);
  channel_sizes(first, plan);
  const bool vectors = takes_vectors(call, team);
  if (vectors)
    enqueue_vectors(call, "batch_sums", std::move(first), {plan.channels, plan.count(), 1});
  else
    enqueue_teams(call.queue, kernel_of(call, "batch_sums", team), first, team, plan.channels);
  OpArgs second;
  for (const auto& input : call.inputs) second.tensor(input);
  second.tensor(sums).tensor(call.outputs[0]);
  if (vectors) {
    row_sizes(second, plan);
    return enqueue_vectors(call, "batch_dx", std::move(second), element_rows(plan));
  }
  element_sizes(second, call, plan);
  enqueue_items(call.queue, kernel_of(call, "batch_dx", Team::item), second,
                static_cast<std::int64_t>(ceil_div(x.numel(), length_of(call))));
}

// ---- gradients

// (C) seen as (1, C, 1, ...), to broadcast against x.
Tensor per_channel(const Tensor& values, const Tensor& x) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.ndim()), 1);
  sizes[1] = values.numel();
  return values.astype(x.dtype()).reshape(sizes);
}

// What the gradients of the statistics themselves add to dx: rarely there.
Tensor through_statistics(const OpGradient& g) {
  const auto& x = g.inputs[0];
  const auto n = static_cast<double>(plan_batch(x.shape()).count());
  Tensor dx;
  if (g.grads[1]) dx = ops::div(per_channel(g.grads[1], x), n).expand(x.shape());
  if (g.grads[2]) {
    const auto inverse = per_channel(g.outputs[2], x);
    const auto slope = ops::mul(per_channel(g.grads[2], x), ops::pow(inverse, 3.0));
    const auto part = ops::mul(ops::div(slope, -n), ops::sub(x, per_channel(g.outputs[1], x)));
    dx = dx ? ops::add(dx, part) : part;
  }
  return dx;
}

std::vector<Tensor> train_gradient(const OpGradient& g) {
  std::vector<Tensor> grads(3);
  if (g.dy())
    grads = call_op(find_op("batch_norm_backward"),
                    {g.inputs[0], g.inputs[1], g.outputs[1], g.outputs[2], g.dy()}, {});
  const auto more = g.wants(0) ? through_statistics(g) : Tensor();
  if (more) grads[0] = grads[0] ? ops::add(grads[0], more) : more;
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (!g.wants(i)) grads[i] = Tensor();
  return grads;
}

std::vector<Tensor> inference_gradient(const OpGradient& g) {
  std::vector<Tensor> grads(5);
  if (!g.dy()) return grads;
  const auto& x = g.inputs[0];
  const auto scale = per_channel(g.inputs[1], x), mean = per_channel(g.inputs[3], x);
  const auto inverse =
      per_channel(ops::rsqrt(ops::add(g.inputs[4], g.attributes.number("eps"))), x);
  auto dy = g.dy();
  if (g.attributes.flag("fuse_relu")) dy = ops::where(ops::le(g.outputs[0], 0.0), 0.0, dy);
  const auto slope = ops::mul(scale, inverse);
  if (g.wants(0)) grads[0] = ops::mul(dy, slope);
  ops::Axes axes{0};
  for (std::int64_t axis = 2; axis < x.ndim(); ++axis) axes.push_back(axis);
  const auto total = ops::sum(dy, axes, true);
  const auto along = ops::sum(ops::mul(dy, ops::mul(ops::sub(x, mean), inverse)), axes, true);
  const auto channel = [&](const Tensor& tensor, std::size_t input) {
    return tensor.reshape({x.shape()[1]}).astype(g.inputs[input].dtype());
  };
  if (g.wants(1)) grads[1] = channel(along, 1);
  if (g.wants(2)) grads[2] = channel(total, 2);
  if (g.wants(3)) grads[3] = channel(ops::neg(ops::mul(total, slope)), 3);
  if (g.wants(4)) grads[4] = channel(ops::mul(ops::mul(along, -0.5), ops::mul(slope, inverse)), 4);
  return grads;
}

Tolerance train_tolerance(const OpSpec&) { return {8, 24}; }

}  // namespace

std::vector<OpDef> batch_norm_ops() {
  OpDef train;
  train.name = "batch_norm_train";
  train.summary = "mean 0 and variance 1 per channel of the batch; also gives the statistics";
  train.dtypes = kFloats;
  train.infer = infer_train;
  train.reference = reference_batch_train;
  train.host = host_batch_train;
  train.backward = train_gradient;
  set_row_variants(train, "batch_norm_train.item", "batch_norm_train.group", kPath, rows_of,
                   run_train);
  train.samples = batch_train_samples;
  train.tolerance = train_tolerance;
  train.tolerance_reason = "statistics of elements up to 3, rounded a few times";

  OpDef backward;
  backward.name = "batch_norm_backward";
  backward.summary = "the gradients of batch_norm_train: dx, dscale, dshift";
  backward.dtypes = kFloats;
  backward.infer = infer_backward;
  backward.reference = reference_batch_backward;
  backward.host = host_batch_backward;
  set_row_variants(backward, "batch_norm_backward.item", "batch_norm_backward.group", kPath,
                   rows_of, run_backward);
  backward.samples = batch_backward_samples;
  backward.tolerance = [](const OpSpec& spec) {
    return Tolerance{8, 32 + static_cast<double>(spec.shape(0).numel()) / 8};
  };
  backward.tolerance_reason = "sums over the batch";

  OpDef inference;
  inference.name = "batch_norm";
  inference.summary = "(x - mean) / sqrt(variance + eps) * scale + shift per channel";
  inference.dtypes = kFloats;
  inference.infer = infer_inference;
  inference.reference = reference_batch_inference;
  inference.host = host_batch_inference;
  inference.backward = inference_gradient;
  OpVariant fused{"batch_norm.fused", "BATCHNORM_FUSED", kPath};
  fused.run = [](const OpCall& call, const VariantRun&) {
    run_inference(call, "batch_folded", length_of(call));
  };
  OpVariant naive{"batch_norm.naive", "BATCHNORM_NAIVE", kPath};
  naive.run = [](const OpCall& call, const VariantRun&) { run_inference(call, "batch_naive", 1); };
  inference.variants = {fused, naive};
  inference.problem = [](const OpCall& call) {
    return KernelProblem{"batchnorm",
                         {call.inputs[0].shape()},
                         call.dtype(),
                         {{"training", false}, {"fuse_relu", call.attributes.flag("fuse_relu")}}};
  };
  inference.samples = batch_inference_samples;
  inference.tolerance = [](const OpSpec&) { return Tolerance{4, 16}; };
  inference.tolerance_reason = "a handful of roundings of values up to 8";
  return {train, backward, inference};
}

}  // namespace netcl
