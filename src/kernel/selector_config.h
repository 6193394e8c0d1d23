// Tile sizes and launch parameters of the variants, for the rules.
#pragma once

#include "kernel/selector_rules.h"

namespace netcl::detail {

// What a variant starts from on a device, before its own `configure`.
KernelConfig starting_config(KernelVariant variant, const ExtendedDeviceProfile& profile);

// Bytes of local memory for one tile of each factor.
std::int64_t tile_bytes(std::int64_t tile_m, std::int64_t tile_n, std::int64_t tile_k, DType dtype);
// Local memory of a 16x16 output tile of a convolution: the input patch behind it.
std::int64_t conv2d_patch_bytes(const RuleInput& input);
// The larger of the two intermediate arrays of Winograd's F(2x2, 3x3).
double winograd_bytes(const RuleInput& input);

void configure_nothing(const RuleInput& input, KernelConfig& config);
void configure_matmul_naive(const RuleInput& input, KernelConfig& config);
void configure_matmul_gemv(const RuleInput& input, KernelConfig& config);
void configure_matmul_vectorized(const RuleInput& input, KernelConfig& config);
void configure_matmul_tiled(const RuleInput& input, KernelConfig& config);
void configure_register_tiled(const RuleInput& input, KernelConfig& config);
void configure_register_tiled_nvidia(const RuleInput& input, KernelConfig& config);
void configure_register_tiled_amd(const RuleInput& input, KernelConfig& config);
void configure_packed(const RuleInput& input, KernelConfig& config);
void configure_conv2d_pointwise(const RuleInput& input, KernelConfig& config);
void configure_conv2d_winograd(const RuleInput& input, KernelConfig& config);
void configure_conv2d_tiled_local(const RuleInput& input, KernelConfig& config);
void configure_per_item(const RuleInput& input, KernelConfig& config);
void configure_elementwise(const RuleInput& input, KernelConfig& config);
void configure_elementwise_scalar(const RuleInput& input, KernelConfig& config);
void configure_reduction_sequential(const RuleInput& input, KernelConfig& config);
void configure_reduction_parallel(const RuleInput& input, KernelConfig& config);
void configure_reduction_workgroup(const RuleInput& input, KernelConfig& config);
void configure_reduction_chunked(const RuleInput& input, KernelConfig& config);

}  // namespace netcl::detail
