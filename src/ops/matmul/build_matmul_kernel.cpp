// A matrix product compiled ahead for one problem.
#include "base/check.h"
#include "netcl/diagnostics.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace netcl::ops {

MatmulKernel build_matmul_kernel(const Queue& queue, std::int64_t M, std::int64_t N, std::int64_t K,
                                 DType dtype, std::string_view variant) {
  if (!queue || queue.is_cpu())
    fail<DeviceError>(
        "[build_matmul_kernel] a kernel needs an OpenCL device: the queue is of the CPU backend; "
        "{}",
        device_advice());
  check<ShapeError>(M > 0 && N > 0 && K > 0,
                    "[build_matmul_kernel] the sizes must be positive: M {}, N {}, K {}", M, N, K);
  const auto& op = find_op("matmul");
  const Attributes none;
  const OpCall call{
      op,
      queue,
      {Tensor::from_shape(queue, {M, K}, dtype), Tensor::from_shape(queue, {K, N}, dtype)},
      none,
      {Tensor::empty(queue, {M, N}, dtype)}};
  std::optional<ForcedVariant> forced;
  if (!variant.empty()) forced.emplace(op, variant);
  const auto choice = choose_variant(call);
  MatmulKernel kernel;
  kernel.queue_ = queue;
  kernel.M_ = M, kernel.N_ = N, kernel.K_ = K;
  kernel.dtype_ = dtype;
  kernel.config_ = choice.config;
  kernel.variant_ = choice.variant->name;
  kernel(call.inputs[0], call.inputs[1]);  // compiles
  return kernel;
}

Tensor MatmulKernel::operator()(const Tensor& a, const Tensor& b) const {
  if (!(a.shape() == Shape{M_, K_} && b.shape() == Shape{K_, N_}))
    fail<ShapeError>("[matmul kernel] it was built for ({}, {}) x ({}, {}): {} and {}", M_, K_, K_,
                     N_, a.shape().to_string(), b.shape().to_string());
  check<DtypeError>(a.dtype() == dtype_ && b.dtype() == dtype_,
                    "[matmul kernel] it was built for {}: {} and {}", name_of(dtype_),
                    name_of(a.dtype()), name_of(b.dtype()));
  const ForcedVariant forced(find_op("matmul"), variant_);
  return matmul(a, b);
}

}  // namespace netcl::ops
