// Tile sizes and launch parameters. Every configuration fits the device: a work-group that is not
// larger than it allows, tiles that its local memory holds, local sizes that divide the tiles.
#include "kernel/selector_config.h"

#include <algorithm>

#include "device/vector_unit.h"
#include "kernel/selector_problem.h"

namespace netcl::detail {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

int clamped_1d(int wanted, const ExtendedDeviceProfile& profile) {
  auto limit = static_cast<std::int64_t>(profile.max_work_group_size);
  if (!profile.max_work_item_sizes.empty())
    limit = std::min(limit, static_cast<std::int64_t>(profile.max_work_item_sizes[0]));
  while (wanted > 1 && wanted > limit) wanted /= 2;
  return wanted;
}

// A tile of which each work-item computes a square of `work_per_thread`; larger squares where the
// device does not allow the work-group that this gives.
void set_square_tile(int tile, int work_per_thread, const ExtendedDeviceProfile& profile,
                     KernelConfig& config) {
  config.tile_m = config.tile_n = tile;
  auto side = tile / work_per_thread;
  while (side > 1 && static_cast<std::size_t>(side) * static_cast<std::size_t>(side) >
                         profile.max_work_group_size)
    side /= 2;
  config.work_per_thread = tile / side;
  config.local_size_2d = {side, side};
}

void set_no_groups(KernelConfig& config) {
  config.use_local_memory = false;
  config.local_size_1d = 1;
  config.local_size_2d = {1, 1};
}

}  // namespace

KernelConfig starting_config(KernelVariant variant, const ExtendedDeviceProfile& profile) {
  KernelConfig config;
  config.variant = variant;
  config.tile_m = profile.optimal_tile_m;
  config.tile_n = profile.optimal_tile_n;
  config.tile_k = profile.optimal_tile_k;
  config.local_size_1d = profile.optimal_wg_size_1d;
  config.local_size_2d = profile.optimal_wg_size_2d;
  config.use_local_memory = profile.use_local_memory;
  config.use_vectorization = profile.use_vectorization;
  config.vector_width = profile.preferred_vector_width_float >= 8 ? 8 : 4;
  return config;
}

std::int64_t tile_bytes(std::int64_t tile_m, std::int64_t tile_n, std::int64_t tile_k,
                        DType dtype) {
  return (tile_m + tile_n) * tile_k * static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t conv2d_patch_bytes(const RuleInput& input) {
  const auto sizes = conv2d_sizes(input.problem);
  if (!sizes) return 0;
  const auto rows = 15 * sizes->stride_h + (sizes->R - 1) * sizes->dilation_h + 1;
  const auto columns = 15 * sizes->stride_w + (sizes->S - 1) * sizes->dilation_w + 1;
  return rows * columns * static_cast<std::int64_t>(size_of(input.problem.dtype));
}

double winograd_bytes(const RuleInput& input) {
  const auto sizes = conv2d_sizes(input.problem);
  if (!sizes) return 0;
  const auto tiles = static_cast<double>(sizes->N) *
                     static_cast<double>(ceil_div(sizes->out_h(), 2)) *
                     static_cast<double>(ceil_div(sizes->out_w(), 2));
  const auto channels = static_cast<double>(std::max(sizes->C, sizes->K));
  return 16 * tiles * channels * static_cast<double>(size_of(input.problem.dtype));
}

void configure_nothing(const RuleInput&, KernelConfig&) {}

void configure_matmul_naive(const RuleInput&, KernelConfig& config) {
  config.tile_m = config.tile_n = 16;
  config.tile_k = 4;
  config.work_per_thread = 1;
  config.use_local_memory = config.use_vectorization = false;
  config.vector_width = 1;
}

void configure_matmul_gemv(const RuleInput& input, KernelConfig& config) {
  config.tile_m = config.tile_n = config.work_per_thread = 1;
  if (input.profile.is_cpu) set_no_groups(config);
}

void configure_matmul_vectorized(const RuleInput&, KernelConfig& config) {
  config.tile_m = config.tile_n = config.tile_k = config.work_per_thread = 4;
  config.use_local_memory = false;
  config.vector_width = 4;
}

void configure_matmul_tiled(const RuleInput& input, KernelConfig& config) {
  config.tile_k = std::min(8, input.profile.optimal_tile_k);
  set_square_tile(std::min(32, input.profile.optimal_tile_m), 2, input.profile, config);
}

void configure_register_tiled(const RuleInput& input, KernelConfig& config) {
  set_square_tile(input.profile.optimal_tile_m, 4, input.profile, config);
}

void configure_register_tiled_nvidia(const RuleInput& input, KernelConfig& config) {
  config.tile_k = 16;
  set_square_tile(64, 8, input.profile, config);
}

void configure_register_tiled_amd(const RuleInput& input, KernelConfig& config) {
  config.tile_k = 16;
  set_square_tile(64, 4, input.profile, config);
}

// As many accumulators as leave room for the operands: 24 of 32 registers, 12 of the 16 that CPUs
// with vectors of 8 floats have.
void configure_packed(const RuleInput& input, KernelConfig& config) {
  const auto width = static_cast<int>(detail::vector_unit_floats(input.profile));
  config.vector_width = width;
  config.tile_m = width == 8 ? 6 : 8;
  config.tile_n = (width == 8 ? 2 : 3) * width;
  config.tile_k = 256;
  config.work_per_thread = config.tile_m * config.tile_n;
  set_no_groups(config);
}

void configure_conv2d_pointwise(const RuleInput&, KernelConfig& config) {
  config.extra["use_1x1_optimization"] = true;
}

void configure_conv2d_winograd(const RuleInput& input, KernelConfig& config) {
  const bool small = input.profile.is_integrated || input.profile.gpu_family == GPUFamily::unknown;
  set_square_tile(small ? 32 : 64, 4, input.profile, config);
}

void configure_conv2d_tiled_local(const RuleInput& input, KernelConfig& config) {
  set_square_tile(16, 1, input.profile, config);
}

void configure_per_item(const RuleInput& input, KernelConfig& config) {
  config.work_per_thread = 1;
  config.use_local_memory = false;
  if (input.profile.is_cpu) set_no_groups(config);
}

void configure_elementwise(const RuleInput& input, KernelConfig& config) {
  config.work_per_thread = config.vector_width;
  config.use_local_memory = false;
  config.extra["tail"] = elements(input.problem) % config.vector_width;
  // A CPU driver runs a work-group as a loop in one thread: long loops hide its start-up.
  if (input.profile.is_cpu) config.local_size_1d = clamped_1d(256, input.profile);
}

void configure_elementwise_scalar(const RuleInput& input, KernelConfig& config) {
  config.vector_width = 1;
  configure_elementwise(input, config);
  config.use_vectorization = false;
}

void configure_reduction_sequential(const RuleInput&, KernelConfig& config) {
  set_no_groups(config);
  config.extra["stages"] = std::int64_t{1};
}

void configure_reduction_parallel(const RuleInput& input, KernelConfig& config) {
  config.local_size_1d = clamped_1d(256, input.profile);
  config.extra["stages"] = std::int64_t{1};
}

void configure_reduction_workgroup(const RuleInput& input, KernelConfig& config) {
  configure_reduction_parallel(input, config);
  config.extra["stages"] = std::int64_t{2};
}

// Several chunks per core, so that a core that is late does not hold up the others.
void configure_reduction_chunked(const RuleInput& input, KernelConfig& config) {
  set_no_groups(config);
  const auto n = elements(input.problem);
  const auto chunks =
      std::clamp<std::int64_t>(ceil_div(n, 4096), 1, std::int64_t{4} * input.profile.compute_units);
  config.extra["chunks"] = chunks;
  config.extra["stages"] = std::int64_t{chunks > 1 ? 2 : 1};
}

}  // namespace netcl::detail
