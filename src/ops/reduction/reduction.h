// Reductions over axes: what the kinds have in common, and the plan (outer, reduced, inner) that
// kernels and host loops compute.
#pragma once

#include <optional>

#include "ops/op.h"

namespace netcl {

enum class ReductionKind { sum, mean, prod, max, min, var, logsumexp, argmax, argmin };

struct ReductionInfo {
  ReductionKind kind;
  const char* name;
  const char* summary;
  const char* macro;  // of states.cl
  bool integers;      // takes int32 and int64

  bool is_arg() const { return kind == ReductionKind::argmax || kind == ReductionKind::argmin; }
  // Has no value for an axis without elements.
  bool needs_elements() const {
    return is_arg() || kind == ReductionKind::max || kind == ReductionKind::min;
  }
  bool widens() const { return kind == ReductionKind::sum || kind == ReductionKind::prod; }
};

const std::vector<ReductionInfo>& reduction_infos();
const ReductionInfo& reduction_info(std::string_view name);

// x as (outer, repeats, inner, span), of which repeats and span are reduced.
struct ReductionRuns {
  std::int64_t outer = 1, repeats = 1, inner = 1, span = 1;
};

struct ReductionPlan {
  std::int64_t outer = 1, reduced = 1, inner = 1;
  std::vector<std::int64_t> order;    // how to permute x first; empty: as it is
  std::optional<ReductionRuns> runs;  // how x may be reduced without that

  std::int64_t results() const { return outer * inner; }
};

// The axes of a call, each once, ascending: of the attribute "axes" (empty: all) or "axis".
std::vector<std::int64_t> reduced_axes(const ReductionInfo& info, const Attributes& attributes,
                                       std::int64_t rank);
ReductionPlan plan_reduction(const Shape& shape, const std::vector<std::int64_t>& axes);
Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& axes, bool keepdim);

// The type in which a kind computes: that of the dtype, long for integers that add up.
DType accumulator(const ReductionInfo& info, DType dtype);

void host_reduction(const ReductionInfo& info, const OpCall& call);
void reference_reduction(const ReductionInfo& info, RefCall& call);
std::vector<OpVariant> reduction_variants(const ReductionInfo& info);
std::vector<Tensor> reduction_backward(const ReductionInfo& info, const OpGradient& gradient);
std::vector<OpSample> reduction_samples(const ReductionInfo& info);

}  // namespace netcl
