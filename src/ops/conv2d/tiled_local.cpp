// conv2d.tiled_local: the size of its work-groups and of their patches.
#include "base/format.h"
#include "ops/conv2d/gemm.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/tiled_local.cl";

struct Patch {
  std::int64_t h, w;
  std::uint64_t bytes(DType dtype) const {
    return static_cast<std::uint64_t>(h * w) * size_of(compute_dtype(dtype));
  }
};

Patch patch_of(const ConvSizes& s, std::int64_t down, std::int64_t across) {
  return {(down - 1) * s.stride_h + (s.R - 1) * s.dilation_h + 1,
          (across - 1) * s.stride_w + (s.S - 1) * s.dilation_w + 1};
}

void run(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const auto filters = with["FILTERS"];
  const auto kernel = op_kernel(
      call.queue, {kPath, "conv2d_tiled_local", {bit(call.dtype()), epilogue.bits(), filters}},
      [&] { return t_and_acc(call.dtype()) + epilogue.defines() + define("FILTERS", filters); });
  auto down = with["TILE_P"], across = with["TILE_Q"];
  const auto allowed = static_cast<std::int64_t>(clamped_local(kernel, down * across));
  while (down * across > allowed) (down >= across ? down : across) /= 2;
  const auto patch = patch_of(s, down, across);
  const auto geometry = s.geometry();
  const auto blocks = static_cast<std::int64_t>(ceil_div(s.group_filters(), filters));
  whole_args(call, epilogue, geometry)
      .value(static_cast<std::int32_t>(patch.h))
      .value(static_cast<std::int32_t>(patch.w))
      .value(KernelArg::local(patch.bytes(call.dtype())))
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(rounded_up(s.Q, across)),
                static_cast<std::int64_t>(rounded_up(s.P, down)), s.N * s.groups * blocks},
               {across, down, 1});
}

// More would leave room for one group in flight on most GPUs.
constexpr std::uint64_t kUsualBytes = 16 * 1024;

std::string too_large(const ConvSizes& s, DType dtype, std::uint64_t limit, std::int64_t down,
                      std::int64_t across) {
  const auto bytes = patch_of(s, down, across).bytes(dtype);
  if (bytes <= limit) return {};
  return fmt::format("its patch needs {} bytes of local memory and there are {}", bytes, limit);
}

VariantSpace space(const OpCall& call, const ExtendedDeviceProfile& profile,
                   const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  auto [across, down] = config.local_size_2d;
  // Small tiles also where the configuration is not of this variant's rule, or the patch too large.
  across = std::clamp(across, 1, 16), down = std::clamp(down, 1, 16);
  const auto usual = std::min<std::uint64_t>(profile.local_mem_size, kUsualBytes);
  while (across * down > 1 && !too_large(s, call.dtype(), usual, down, across).empty())
    (down >= across ? down : across) /= 2;
  const auto dtype = call.dtype();
  return {{{"TILE_P", {4, 8, 16}}, {"TILE_Q", {8, 16, 32}}, {"FILTERS", {1, 4, 8}}},
          {{"TILE_P", down}, {"TILE_Q", across}, {"FILTERS", 4}},
          [&profile, s, dtype](const Parameters& p) -> std::string {
            const auto items = p.at("TILE_P") * p.at("TILE_Q");
            if (static_cast<std::size_t>(items) > profile.max_work_group_size)
              return fmt::format("the device takes at most {} items per group",
                                 profile.max_work_group_size);
            return too_large(s, dtype, profile.local_mem_size, p.at("TILE_P"), p.at("TILE_Q"));
          },
          {static_cast<std::size_t>(s.group_filters()), static_cast<std::size_t>(s.pixels()),
           static_cast<std::size_t>(s.taps())}};
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto s = sizes_of_forward(call);
  const auto reason = nothing_to_sum(s);
  return reason.empty() ? too_large(s, call.dtype(), profile.local_mem_size, 1, 1) : reason;
}

}  // namespace

OpVariant tiled_local_variant() {
  return {"conv2d.tiled_local", "CONV2D_TILED_LOCAL", kPath, declines, run, space};
}

}  // namespace netcl::conv
