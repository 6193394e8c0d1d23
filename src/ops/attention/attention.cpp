// The ops "attention" and "attention_backward".
#include <cmath>
#include <limits>

#include "base/check.h"
#include "netcl/ops.h"
#include "ops/attention/host.h"
#include "ops/attention/plan.h"
#include "ops/attention/samples.h"
#include "ops/attention/tiles.h"
#include "ops/dispatch.h"
#include "ops/elementwise/broadcast.h"
#include "ops/registry.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr const char* kForward = "ops/attention/attention.cl";
constexpr const char* kBackward = "ops/attention/backward.cl";
constexpr double kInf = std::numeric_limits<double>::infinity();

Shape without_last(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 1));
}

// ---- the reference: the whole score matrix, in doubles

struct RefSizes {
  std::int64_t Z, L, S, E, F;
  explicit RefSizes(const RefCall& call) {
    const auto &q = call.inputs[0].shape, &k = call.inputs[1].shape, &v = call.inputs[2].shape;
    const auto rank = q.rank();
    L = q[rank - 2], E = q[rank - 1], S = k[rank - 2], F = v[rank - 1];
    Z = 1;
    for (std::int64_t i = 0; i + 2 < rank; ++i) Z *= q[i];
  }
};

// Masked scores (Z, L, S).
std::vector<double> reference_scores(const RefCall& call, const RefSizes& n) {
  const auto &q = call.inputs[0].values, &k = call.inputs[1].values;
  auto scores_shape = call.inputs[0].shape.sizes();
  scores_shape.back() = n.S;
  Strides mask_strides;
  const Shape shape(scores_shape);
  if (call.has(3))
    mask_strides =
        broadcast_strides(call.inputs[3].shape, contiguous_strides(call.inputs[3].shape), shape);
  const double scale = call.attributes.number("scale");
  std::vector<double> scores(static_cast<std::size_t>(n.Z * n.L * n.S));
  for (std::int64_t i = 0; i < n.Z * n.L * n.S; ++i) {
    const auto s = i % n.S, l = i / n.S % n.L, z = i / n.S / n.L;
    double dot = 0;
    for (std::int64_t e = 0; e < n.E; ++e)
      dot += q[static_cast<std::size_t>((z * n.L + l) * n.E + e)] *
             k[static_cast<std::size_t>((z * n.S + s) * n.E + e)];
    dot *= scale;
    if (call.has(3)) {
      std::int64_t at = 0, rest = i;
      for (std::int64_t axis = shape.rank(); axis-- > 0;) {
        at += rest % shape[axis] * mask_strides[static_cast<std::size_t>(axis)];
        rest /= shape[axis];
      }
      const double value = call.inputs[3].values[static_cast<std::size_t>(at)];
      if (call.inputs[3].dtype == DType::boolean)
        dot = value == 0 ? -kInf : dot;
      else
        dot += value;
    }
    if (call.attributes.flag("causal") && s > l) dot = -kInf;
    scores[static_cast<std::size_t>(i)] = dot;
  }
  return scores;
}

void forward_reference(RefCall& call) {
  const RefSizes n(call);
  const auto scores = reference_scores(call, n);
  const auto& v = call.inputs[2].values;
  for (std::int64_t row = 0; row < n.Z * n.L; ++row) {
    const double* score = scores.data() + row * n.S;
    double largest = -kInf, total = 0;
    for (std::int64_t s = 0; s < n.S; ++s) largest = std::fmax(largest, score[s]);
    for (std::int64_t s = 0; s < n.S; ++s) total += std::exp(score[s] - largest);
    for (std::int64_t f = 0; f < n.F; ++f) {
      double sum = 0;
      for (std::int64_t s = 0; s < n.S; ++s)
        sum += std::exp(score[s] - largest) / total *
               v[static_cast<std::size_t>((row / n.L * n.S + s) * n.F + f)];
      call.outputs[0].values[static_cast<std::size_t>(row * n.F + f)] = sum;
    }
    call.outputs[1].values[static_cast<std::size_t>(row)] =
        largest == -kInf ? -kInf : largest + std::log(total);
  }
}

void backward_reference(RefCall& call) {
  const RefSizes n(call);
  const auto scores = reference_scores(call, n);
  const auto &q = call.inputs[0].values, &k = call.inputs[1].values, &v = call.inputs[2].values;
  const auto &y = call.inputs[4].values, &lse = call.inputs[5].values, &dy = call.inputs[6].values;
  auto &dq = call.outputs[0].values, &dk = call.outputs[1].values, &dv = call.outputs[2].values;
  const double scale = call.attributes.number("scale");
  for (std::int64_t row = 0; row < n.Z * n.L; ++row)
    for (std::int64_t s = 0; s < n.S; ++s) {
      const auto key = row / n.L * n.S + s;
      const auto at = [](std::int64_t r, std::int64_t width, std::int64_t i) {
        return static_cast<std::size_t>(r * width + i);
      };
      const double p = std::exp(scores[at(row, n.S, s)] - lse[static_cast<std::size_t>(row)]);
      double ds = call.has(7) ? call.inputs[7].values[static_cast<std::size_t>(row)] : 0;
      for (std::int64_t f = 0; f < n.F; ++f)
        ds += dy[at(row, n.F, f)] * (v[at(key, n.F, f)] - y[at(row, n.F, f)]);
      ds *= p * scale;
      for (std::int64_t f = 0; f < n.F; ++f) dv[at(key, n.F, f)] += p * dy[at(row, n.F, f)];
      for (std::int64_t e = 0; e < n.E; ++e) {
        dq[at(row, n.E, e)] += ds * k[at(key, n.E, e)];
        dk[at(key, n.E, e)] += ds * q[at(row, n.E, e)];
      }
    }
}

// ---- kernels

// Keys at a time. On a GPU the scores of a block would live in memory, being indexed.
std::int64_t block_of(const OpCall& call) { return device_profile(call.queue).is_cpu ? 32 : 1; }

std::string prologue(const OpCall& call, const AttentionPlan& plan, std::int64_t vec,
                     std::int64_t group) {
  const auto dtype = call.dtype();
  return t_and_acc(dtype) + vector_macros(dtype, vec) +
         type_macros("M", plan.mask ? plan.mask.dtype() : dtype) + define("BLOCK", block_of(call)) +
         define("MASK", plan.mask_kind()) + define("CAUSAL", plan.causal ? 1 : 0) +
         (group > 0 ? define("WG", group) : std::string());
}

KernelPtr kernel_of(const OpCall& call, const AttentionPlan& plan, const char* path,
                    const char* name, std::int64_t group) {
  const auto& profile = device_profile(call.queue);
  const auto compute = compute_dtype(call.dtype());
  const auto vec =
      profile.is_cpu
          ? vector_lanes(profile, 64 / static_cast<std::int64_t>(size_of(compute)), compute)
          : 4;
  const KernelKey key(
      path, name,
      {static_cast<std::int64_t>(call.dtype()), plan.mask_kind(), plan.causal ? 1 : 0, vec, group});
  return op_kernel(call.queue, key, [&] { return prologue(call, plan, vec, group); });
}

void enqueue(OpArgs& args, const OpCall& call, const AttentionPlan& plan, const KernelPtr& kernel,
             const WorkSize& global, const WorkSize& local) {
  const auto sizes = plan.sizes(), strides = plan.strides();
  args.by_value(sizes.values.data(), sizeof sizes.values / 2)
      .by_value(strides.values.data(), sizeof strides.values / 2)
      .value(plan.inner)
      .number(plan.scale, call.dtype())
      .enqueue(call.queue, kernel, global, local);
}

OpArgs forward_args(const OpCall& call, const AttentionPlan& plan, const Tensor& work) {
  OpArgs args;
  args.tensor(call.inputs[0])
      .tensor(call.inputs[1])
      .tensor(call.inputs[2])
      .tensor(plan.mask ? plan.mask : call.inputs[0])
      .tensor(call.outputs[0])
      .tensor(call.outputs[1])
      .tensor(work);
  return args;
}

// A launch of `rows` guarded items for each batch. A CPU's cores take them one by one.
void enqueue_rows(OpArgs& args, const OpCall& call, const AttentionPlan& plan,
                  const KernelPtr& kernel, std::int64_t rows) {
  const bool cpu = device_profile(call.queue).is_cpu;
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, cpu ? 1 : 64));
  enqueue(args, call, plan, kernel,
          {static_cast<std::int64_t>(rounded_up(rows, local)), plan.batches}, {local, 1});
}

void run_rows(const OpCall& call) {
  const auto plan = plan_attention(call);
  const auto work = Tensor::empty(call.queue, call.outputs[0].shape(), compute_dtype(call.dtype()));
  auto args = forward_args(call, plan, work);
  enqueue_rows(args, call, plan, kernel_of(call, plan, kForward, "attention_rows", 0), plan.L);
}

void run_groups(const OpCall& call) {
  const auto plan = plan_attention(call);
  const auto& profile = device_profile(call.queue);
  std::int64_t group = 64;
  while (group > 1 && static_cast<std::size_t>(group) > profile.max_work_group_size) group /= 2;
  const auto work = Tensor::empty(call.queue, call.outputs[0].shape(), compute_dtype(call.dtype()));
  auto args = forward_args(call, plan, work);
  enqueue(args, call, plan, kernel_of(call, plan, kForward, "attention_groups", group),
          {plan.L * group, plan.batches}, {group, 1});
}

void run_backward(const OpCall& call) {
  const auto plan = plan_attention(call);
  const auto acc = compute_dtype(call.dtype());
  const auto &y = call.inputs[4], &lse = call.inputs[5], &dy = call.inputs[6];
  auto delta = ops::sum(ops::mul(dy.astype(acc), y.astype(acc)), {-1}).contiguous();
  if (call.has(7)) delta = ops::sub(delta, call.inputs[7]);
  const auto launch = [&](const char* name, const Tensor& result, std::int64_t rows) {
    OpArgs args;
    args.tensor(call.inputs[0])
        .tensor(call.inputs[1])
        .tensor(call.inputs[2])
        .tensor(plan.mask ? plan.mask : call.inputs[0])
        .tensor(lse)
        .tensor(delta)
        .tensor(dy)
        .tensor(result);
    if (rows * plan.batches == 0) return;
    enqueue_rows(args, call, plan, kernel_of(call, plan, kBackward, name, 0), rows);
  };
  const auto dq = Tensor::empty(call.queue, call.inputs[0].shape(), acc);
  launch("attention_backward_q", dq, plan.L);
  auto sizes = call.inputs[1].shape().sizes();
  sizes.back() = plan.E + plan.F;
  const auto dkv = Tensor::empty(call.queue, Shape(sizes), acc);
  launch("attention_backward_kv", dkv, plan.S);
  call.outputs[0].copy_from(dq);
  call.outputs[1].copy_from(dkv.narrow(-1, 0, plan.E));
  call.outputs[2].copy_from(dkv.narrow(-1, plan.E, plan.F));
}

// ---- declarations

std::vector<Tensor> attention_backward(const OpGradient& g) {
  const auto& y = g.outputs[0];
  const auto dy = g.dy() ? g.dy() : Tensor::from_shape(y.queue(), y.shape(), y.dtype());
  auto grads =
      call_op(find_op("attention_backward"),
              {g.inputs[0], g.inputs[1], g.inputs[2], g.inputs[3], y, g.outputs[1], dy, g.grads[1]},
              g.attributes);
  for (std::size_t i = 0; i < 3; ++i)
    if (!g.wants(i)) grads[i] = Tensor();
  return grads;
}

OpDef forward_op() {
  OpDef op;
  op.name = "attention";
  op.summary = "softmax(q k^T * scale + mask) v without storing the score matrix";
  op.dtypes = kFloats;
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    check_attention(spec);
    auto sizes = spec.shape(0).sizes();
    sizes.back() = spec.shape(2)[spec.shape(2).rank() - 1];
    return {{Shape(sizes), spec.dtype()},
            {without_last(spec.shape(0)), compute_dtype(spec.dtype())}};
  };
  op.reference = forward_reference;
  op.host = attention_on_host;
  op.backward = attention_backward;
  OpVariant groups{"attention.groups", "ROWWISE_GROUP", kForward};
  groups.run = [](const OpCall& call, const VariantRun&) { run_groups(call); };
  OpVariant rows{"attention.rows", "ROWWISE_ITEM", kForward};
  rows.run = [](const OpCall& call, const VariantRun&) { run_rows(call); };
  op.variants = {attention_few(), attention_tiles(), rows, groups};
  op.problem = [](const OpCall& call) {
    const auto plan = plan_attention(call);
    return KernelProblem{"rowwise", {Shape{plan.batches * plan.L, plan.S, 1}}, call.dtype(), {}};
  };
  op.samples = attention_samples;
  op.tolerance = [](const OpSpec& spec) {
    return Tolerance{4, 16.0 + static_cast<double>(spec.shape(0)[spec.shape(0).rank() - 1])};
  };
  op.tolerance_reason = "scores of E products go through exp, and their weighted sum is rounded";
  return op;
}

OpDef backward_op() {
  OpDef op;
  op.name = "attention_backward";
  op.summary = "gradients of attention for q, k and v";
  op.dtypes = kFloats;
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    check_attention(spec);
    return {{spec.shape(0), spec.dtype()},
            {spec.shape(1), spec.dtype()},
            {spec.shape(2), spec.dtype()}};
  };
  op.reference = backward_reference;
  op.host = attention_backward_on_host;
  OpVariant rows{"attention_backward.rows", "", kBackward};
  rows.run = [](const OpCall& call, const VariantRun&) { run_backward(call); };
  op.variants = {attention_backward_tiles(), rows};
  op.samples = attention_backward_samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto &q = spec.shape(0), &k = spec.shape(1);
    return Tolerance{
        4, 32.0 * static_cast<double>(q[q.rank() - 2] + k[k.rank() - 2] + q[q.rank() - 1])};
  };
  op.tolerance_reason =
      "weights are computed again from scores of E products, then summed over L or S";
  return op;
}

}  // namespace

std::vector<OpDef> ops_of_attention() { return {forward_op(), backward_op()}; }

Tensor ops::scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const Tensor& mask, bool causal, double scale) {
  check<ArgumentError>(std::isfinite(scale), "[attention] the scale must be finite: {}", scale);
  check<ShapeError>(q.ndim() >= 2, "[attention] q must be (..., L, E): rank {}", q.ndim());
  const double used = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return apply("attention", {q, k, v, mask}, {{"causal", causal}, {"scale", used}});
}

}  // namespace netcl
