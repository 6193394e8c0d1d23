// The ops "matmul" and "linear".
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/activation.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/plan.h"
#include "ops/matmul/samples.h"

namespace netcl {
namespace {

void check_dtypes(const OpSpec& spec) {
  const auto dtype = spec.dtype(0);
  for (std::size_t i = 1; i < spec.inputs.size(); ++i)
    if (spec.has(i))
      check<DtypeError>(spec.dtype(i) == dtype,
                        "[{}] the tensors must have one dtype: {} and {} (use astype)",
                        spec.op.name, name_of(dtype), name_of(spec.dtype(i)));
  const auto& allowed = spec.op.dtypes;
  check<DtypeError>(std::find(allowed.begin(), allowed.end(), dtype) != allowed.end(),
                    "[{}] there is no product of {} (use astype)", spec.op.name, name_of(dtype));
}

KernelProblem problem_of(const MatmulPlan& plan) {
  return {"matmul", {Shape{plan.M, plan.K}, Shape{plan.K, plan.N}}, plan.dtype(), {}};
}

// ---- matmul

void matmul_reference(RefCall& call) {
  const auto &a = call.inputs[0], &b = call.inputs[1];
  auto& y = call.outputs[0];
  const auto K = a.shape[a.shape.rank() - 1];
  const auto M = a.shape.rank() == 1 ? 1 : a.shape[a.shape.rank() - 2];
  const auto N = b.shape.rank() == 1 ? 1 : b.shape[b.shape.rank() - 1];
  if (y.shape.numel() == 0) return;
  const auto batch_of = [](const Shape& shape) {
    const auto count = std::min<std::int64_t>(shape.rank(), 2);
    return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - count));
  };
  const auto batch = broadcast_shapes("matmul", batch_of(a.shape), batch_of(b.shape));
  const auto batches = plan_broadcast(
      batch, {broadcast_strides(batch_of(a.shape), contiguous_strides(batch_of(a.shape)), batch),
              broadcast_strides(batch_of(b.shape), contiguous_strides(batch_of(b.shape)), batch)});
  std::size_t out = 0;
  for_each_run(batches, 0, batch.numel(), [&](const auto& offsets, const auto& steps, auto count) {
    for (std::int64_t z = 0; z < count; ++z) {
      const auto* left = a.values.data() + (offsets[0] + z * steps[0]) * M * K;
      const auto* right = b.values.data() + (offsets[1] + z * steps[1]) * K * N;
      for (std::int64_t i = 0; i < M; ++i)
        for (std::int64_t j = 0; j < N; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < K; ++k) sum += left[i * K + k] * right[k * N + j];
          y.values[out++] = sum;
        }
    }
  });
}

// As matrices: vectors get the axis back that the product dropped.
std::vector<Tensor> matmul_backward(const OpGradient& g) {
  const auto &a = g.inputs[0], &b = g.inputs[1];
  auto dy = g.dy();
  if (b.ndim() == 1) dy = dy.unsqueeze(-1);
  if (a.ndim() == 1) dy = dy.unsqueeze(-2);
  const auto left = a.ndim() == 1 ? a.unsqueeze(0) : a;
  const auto right = b.ndim() == 1 ? b.unsqueeze(1) : b;
  std::vector<Tensor> grads(2);
  if (g.wants(0))
    grads[0] = reduce_to_shape(ops::matmul(dy, right.transpose()), left.shape())
                   .reshape(a.shape().sizes());
  if (g.wants(1))
    grads[1] = reduce_to_shape(ops::matmul(left.transpose(), dy), right.shape())
                   .reshape(b.shape().sizes());
  return grads;
}

OpDef matmul_op() {
  const auto plan = [](const OpCall& call) {
    return plan_matmul(call.inputs[0], call.inputs[1], call.outputs[0]);
  };
  OpDef op;
  op.name = "matmul";
  op.summary = "matrix product, batched with broadcasting, any transposes";
  op.dtypes = kFloatsAndInts;
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    check_dtypes(spec);
    return {{matmul_shape("matmul", spec.shape(0), spec.shape(1)), spec.dtype()}};
  };
  op.reference = matmul_reference;
  op.host = [plan](const OpCall& call) { host_matmul(plan(call)); };
  op.backward = matmul_backward;
  op.saves = [](const std::vector<bool>& wanted, const Attributes&) {
    return SavedTensors{other_factor(wanted), 0};
  };
  op.variants = matmul_variants(plan);
  op.problem = [plan](const OpCall& call) { return problem_of(plan(call)); };
  op.samples = matmul_samples;
  op.tuning = matmul_tuning;
  op.tolerance = [](const OpSpec& spec) {
    const auto& a = spec.shape(0);
    return Tolerance{2, static_cast<double>(a[a.rank() - 1])};
  };
  op.tolerance_reason = "the result is rounded once; K products of values up to 1 are summed";
  op.takes_views = true;
  return op;
}

// ---- linear

void linear_reference(RefCall& call) {
  const auto &x = call.inputs[0], &w = call.inputs[1];
  const auto K = w.shape[1], N = w.shape[0];
  const auto rows =
      K == 0 ? call.outputs[0].shape.numel() / std::max<std::int64_t>(N, 1) : x.shape.numel() / K;
  const auto activation = static_cast<int>(call.attributes.integer("activation"));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < N; ++j) {
      double sum = call.has(2) ? call.inputs[2].values[static_cast<std::size_t>(j)] : 0;
      for (std::int64_t k = 0; k < K; ++k)
        sum += x.values[static_cast<std::size_t>(i * K + k)] *
               w.values[static_cast<std::size_t>(j * K + k)];
      const auto at = static_cast<std::size_t>(i * N + j);
      if (call.has(3)) sum += call.inputs[3].values[at];
      call.outputs[0].values[at] = activate(activation, sum);
    }
}

std::vector<TensorSpec> linear_infer(const OpSpec& spec) {
  check_dtypes(spec);
  const auto &x = spec.shape(0), &w = spec.shape(1);
  if (x.rank() < 1 || w.rank() != 2 || x[x.rank() - 1] != w[1])
    fail<ShapeError>("[linear] x must be (..., in) and w (out, in): {} and {}", x.to_string(),
                     w.to_string());
  if (spec.has(2) && !(spec.shape(2) == Shape{w[0]}))
    fail<ShapeError>("[linear] the bias must have one element per output, ({},): {}", w[0],
                     spec.shape(2).to_string());
  activation_op(static_cast<int>(spec.attributes.integer("activation")));
  auto sizes = x.sizes();
  sizes.back() = w[0];
  Shape result(std::move(sizes));
  check_residual(spec, result);
  return {{std::move(result), spec.dtype()}};
}

std::vector<Tensor> linear_backward(const OpGradient& g) {
  const auto &x = g.inputs[0], &w = g.inputs[1];
  const auto activation = static_cast<int>(g.attributes.integer("activation"));
  const auto dz = activation_backward(activation, g, [&] {
    return apply("linear", g.inputs, {{"activation", std::int64_t{0}}});
  });
  // The number of rows follows from the leading axes alone: the last one may have no elements.
  const auto rows = [](const Tensor& t) {
    std::int64_t count = 1;
    for (std::int64_t i = 0; i + 1 < t.ndim(); ++i) count *= t.size(i);
    return t.reshape({count, t.size(-1)});
  };
  std::vector<Tensor> grads(g.inputs.size());
  if (g.wants(0)) grads[0] = ops::matmul(dz, w);
  if (g.wants(1)) grads[1] = ops::matmul(rows(dz).transpose(), rows(x));
  if (g.wants(2)) grads[2] = reduce_to_shape(dz, g.inputs[2].shape());
  if (g.wants(3)) grads[3] = dz;
  return grads;
}

OpDef linear_op() {
  const auto plan = [](const OpCall& call) {
    return plan_linear(call.inputs[0], call.inputs[1],
                       call.has(2) ? call.inputs[2].contiguous() : Tensor(),
                       call.has(3) ? call.inputs[3] : Tensor(),
                       static_cast<int>(call.attributes.integer("activation")), call.outputs[0]);
  };
  OpDef op;
  op.name = "linear";
  op.summary = "activation(x w^T + b + residual), all fused into the product";
  op.dtypes = kFloats;
  op.infer = linear_infer;
  op.reference = linear_reference;
  op.host = [plan](const OpCall& call) { host_matmul(plan(call)); };
  op.backward = linear_backward;
  op.saves = saved_by_product;
  op.variants = matmul_variants(plan);
  op.problem = [plan](const OpCall& call) { return problem_of(plan(call)); };
  op.samples = linear_samples;
  op.tolerance = [](const OpSpec& spec) {
    return Tolerance{8, static_cast<double>(spec.shape(1)[1]) + 4};
  };
  op.tolerance_reason = "as matmul, and a few units for the functions of the activations";
  op.takes_views = true;
  return op;
}

}  // namespace

std::vector<OpDef> ops_of_matmul() { return {matmul_op(), linear_op()}; }

namespace ops {

Tensor matmul(const Tensor& a, const Tensor& b) { return apply("matmul", {a, b}); }

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b, Activation activation,
              const Tensor& residual) {
  return apply("linear", {x, w, b, residual},
               {{"activation", static_cast<std::int64_t>(activation)}});
}

Tensor bias_add(const Tensor& x, const Tensor& b) {
  const auto axis = x.ndim() == 4 ? 1 : x.ndim() - 1;
  if (b.ndim() != 1 || x.ndim() < 1 || b.size() != x.size(axis))
    fail<ShapeError>("[bias_add] the bias must be (C,) for {}: {}",
                     x.ndim() == 4 ? "x (N, C, H, W)" : "x (..., C)",
                     fmt::format("{} and {}", b.shape().to_string(), x.shape().to_string()));
  return x.ndim() == 4 ? add(x, b.view(Shape{b.size(), 1, 1})) : add(x, b);
}

}  // namespace ops
}  // namespace netcl
