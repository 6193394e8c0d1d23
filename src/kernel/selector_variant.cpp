// The names of kernel variants.
#include "base/check.h"
#include "netcl/kernel_selector.h"

namespace netcl {
namespace {

constexpr std::string_view kNames[] = {
    "MATMUL_NAIVE",
    "MATMUL_TILED",
    "MATMUL_REGISTER_TILED",
    "MATMUL_VECTORIZED",
    "MATMUL_PACKED",
    "MATMUL_GEMV",
    "CONV2D_NAIVE",
    "CONV2D_IM2COL",
    "CONV2D_IMPLICIT_GEMM",
    "CONV2D_TILED_LOCAL",
    "CONV2D_WINOGRAD",
    "CONV2D_PACKED",
    "CONV2D_WINOGRAD_PANELS",
    "CONV2D_DEPTHWISE",
    "ELEMENTWISE_SCALAR",
    "ELEMENTWISE_VECTORIZED",
    "REDUCTION_SEQUENTIAL",
    "REDUCTION_PARALLEL",
    "REDUCTION_WORKGROUP",
    "REDUCTION_CHUNKED",
    "BATCHNORM_NAIVE",
    "BATCHNORM_FUSED",
    "ROWWISE_ITEM",
    "ROWWISE_GROUP",
    "CUSTOM",
};
static_assert(std::size(kNames) == kKernelVariants);

}  // namespace

std::string_view name_of(KernelVariant variant) {
  const auto index = static_cast<std::size_t>(variant);
  check<ArgumentError>(index < std::size(kNames), "[kernel_variant] no such variant: {}", index);
  return kNames[index];
}

std::optional<KernelVariant> find_kernel_variant(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<KernelVariant>(i);
  return {};
}

KernelVariant parse_kernel_variant(std::string_view name) {
  if (const auto found = find_kernel_variant(name)) return *found;
  fail<ArgumentError>("[kernel_variant] the name must be one of {}: {}", join(kNames, ", "), name);
}

}  // namespace netcl
