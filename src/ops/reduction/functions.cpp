// The public functions of the reductions.
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/kernels.h"

namespace netcl::ops {
namespace {

// bool and the small integers are counted as int32.
Tensor numeric(const Tensor& x) {
  return x && !is_floating(x.dtype()) ? x.astype(compute_dtype(x.dtype())) : x;
}
Tensor floating(const Tensor& x) { return x ? x.astype(floating_of(x.dtype())) : x; }

Tensor reduce(const char* op, const Tensor& x, const Axes& axes, bool keepdim) {
  return apply(op, {x}, {{"axes", axes}, {"keepdim", keepdim}});
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("sum", numeric(x), axes, keepdim);
}
Tensor reduce_sum(const Tensor& x, const Axes& axes, bool keepdim) { return sum(x, axes, keepdim); }
Tensor mean(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("mean", floating(x), axes, keepdim);
}
Tensor max(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("max", numeric(x), axes, keepdim);
}
Tensor min(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("min", numeric(x), axes, keepdim);
}
Tensor prod(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("prod", numeric(x), axes, keepdim);
}
Tensor var(const Tensor& x, const Axes& axes, bool keepdim, double correction) {
  return apply("var", {floating(x)},
               {{"axes", axes}, {"keepdim", keepdim}, {"correction", correction}});
}
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdim) {
  return reduce("logsumexp", floating(x), axes, keepdim);
}
Tensor argmax(const Tensor& x, std::int64_t axis, bool keepdim) {
  return apply("argmax", {numeric(x)}, {{"axis", axis}, {"keepdim", keepdim}});
}
Tensor argmin(const Tensor& x, std::int64_t axis, bool keepdim) {
  return apply("argmin", {numeric(x)}, {{"axis", axis}, {"keepdim", keepdim}});
}

}  // namespace netcl::ops
