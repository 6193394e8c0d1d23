#include "ops/attention/plan.h"

#include <cmath>

#include "base/check.h"
#include "ops/elementwise/broadcast.h"

namespace netcl {
namespace {

Shape leading(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2));
}

Shape score_shape(const Shape& q, const Shape& k) {
  auto sizes = leading(q).sizes();
  sizes.push_back(q[q.rank() - 2]);
  sizes.push_back(k[k.rank() - 2]);
  return Shape(std::move(sizes));
}

void set_mask(AttentionPlan& plan, Tensor mask, const Shape& scores) {
  const auto batch = leading(scores);
  auto strides = broadcast_strides(mask.shape(), mask.strides(), scores);
  auto loops = plan_broadcast(batch, {Strides(strides.begin(), strides.end() - 2)});
  if (loops.sizes.size() > 2) {
    mask = mask.expand(scores).contiguous();
    strides = mask.strides();
    loops = plan_broadcast(batch, {Strides(strides.begin(), strides.end() - 2)});
  }
  const auto rank = loops.sizes.size();
  if (rank > 0) plan.inner = loops.sizes[rank - 1];
  if (rank > 0) plan.mask_strides[1] = loops.strides[0][rank - 1];
  if (rank > 1) plan.mask_strides[0] = loops.strides[0][rank - 2];
  plan.mask_strides[2] = strides[strides.size() - 2];
  plan.mask_strides[3] = strides[strides.size() - 1];
  plan.mask = mask;
}

}  // namespace

void check_attention(const OpSpec& spec) {
  const auto &q = spec.shape(0), &k = spec.shape(1), &v = spec.shape(2);
  const auto shapes = [&] {
    return fmt::format("{}, {} and {}", q.to_string(), k.to_string(), v.to_string());
  };
  if (q.rank() < 2 || q.rank() != k.rank() || q.rank() != v.rank())
    fail<ShapeError>("[attention] q, k and v must have one rank, at least 2: {}", shapes());
  const auto rank = q.rank();
  if (!(leading(q) == leading(k)) || !(leading(q) == leading(v)))
    fail<ShapeError>("[attention] the leading axes of q, k and v must be equal: {}", shapes());
  if (q[rank - 1] != k[rank - 1] || k[rank - 2] != v[rank - 2] || q[rank - 1] == 0)
    fail<ShapeError>(
        "[attention] q must be (..., L, E), k (..., S, E), v (..., S, F) and E not 0: {}",
        shapes());
  for (std::size_t i = 0; i < 3; ++i)
    check<DtypeError>(is_floating(spec.dtype(i)) && spec.dtype(i) == spec.dtype(0) &&
                          spec.dtype(i) != DType::bfloat16,
                      "[attention] q, k and v must have one floating dtype: {} and {}",
                      name_of(spec.dtype(0)), name_of(spec.dtype(i)));
  if (!spec.has(3)) return;
  const auto scores = score_shape(q, k);
  if (!(broadcast_shapes("attention", spec.shape(3), scores) == scores))
    fail<ShapeError>("[attention] the mask must broadcast to {}: {}", scores.to_string(),
                     spec.shape(3).to_string());
  check<DtypeError>(spec.dtype(3) == DType::boolean || spec.dtype(3) == spec.dtype(0),
                    "[attention] the mask must be bool or {}: {}", name_of(spec.dtype(0)),
                    name_of(spec.dtype(3)));
}

AttentionPlan plan_attention(const OpCall& call) {
  const auto &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  AttentionPlan plan;
  plan.L = q.size(-2), plan.S = k.size(-2), plan.E = q.size(-1), plan.F = v.size(-1);
  plan.batches = leading(q.shape()).numel();
  plan.scale = call.attributes.number("scale");
  plan.causal = call.attributes.flag("causal");
  if (call.has(3)) set_mask(plan, call.inputs[3], score_shape(q.shape(), k.shape()));
  return plan;
}

}  // namespace netcl
