// The public functions of the normalisations.
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/registry.h"

namespace netcl::ops {
namespace {

// How many axes are normalised: as many as the parameters have, else the last.
std::int64_t axes_of(const Tensor& scale, const Tensor& shift) {
  return scale ? scale.ndim() : shift ? shift.ndim() : 1;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps) {
  return apply("layer_norm", {x, scale, shift}, {{"axes", axes_of(scale, shift)}, {"eps", eps}});
}
Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps) {
  return apply("rms_norm", {x, scale}, {{"axes", axes_of(scale, {})}, {"eps", eps}});
}
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& scale, const Tensor& shift,
                  double eps) {
  return apply("group_norm", {x, scale, shift}, {{"groups", groups}, {"eps", eps}});
}

BatchNormResult batch_norm_train(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                 double eps) {
  auto results = call_op(find_op("batch_norm_train"), {x, scale, shift}, {{"eps", eps}});
  return {results[0], results[1], results[2]};
}

Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                  const Tensor& variance, double eps, bool fuse_relu) {
  // Running statistics may be kept in any floating dtype.
  const auto exact = [&](const Tensor& t) {
    return x && t && is_floating(t.dtype()) ? t.astype(compute_dtype(x.dtype())) : t;
  };
  return apply("batch_norm", {x, scale, shift, exact(mean), exact(variance)},
               {{"eps", eps}, {"fuse_relu", fuse_relu}});
}

}  // namespace netcl::ops
