#include "ops/conv2d/winograd_strips.h"

#include <algorithm>
#include <bit>

#include "ops/conv2d/launch.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/winograd_strips.cl";
constexpr std::int64_t kItemsPerCore = 8;

struct alignas(32) Sizes {
  std::int64_t filters, channels, pitch, strips;
};
struct alignas(16) Steps {
  std::int64_t v, m;
};

}  // namespace

std::optional<PanelTile> strip_tile(std::int64_t tiles, std::int64_t vec,
                                    const KernelConfig& config) {
  const auto vectors = static_cast<std::int64_t>(ceil_div(tiles, vec));
  if (vectors < 1 || vectors > kMostStripVectors) return {};
  const auto sums = static_cast<std::uint64_t>(config.tile_m * config.tile_n / config.vector_width);
  const auto rows =
      std::bit_floor(std::max<std::uint64_t>(sums / static_cast<std::uint64_t>(vectors), 1));
  return PanelTile(std::min(static_cast<std::int64_t>(rows), vec), vectors, vec);
}

std::int64_t StripProduct::strips(const PanelTile& tile) const {
  return static_cast<std::int64_t>(ceil_div(filters, tile.mr));
}

void StripProduct::enqueue(const Queue& queue, const Tensor& u, const Tensor& v, const Tensor& m,
                           const PanelTile& tile) const {
  const auto dtype = u.dtype();
  const auto kernel = op_kernel(queue, {kPath, "winograd_strips", {bit(dtype), tile.bits()}},
                                [&] { return t_and_acc(dtype) + tile.defines(dtype); });
  // Places are enough work-items, but for devices of many cores.
  const auto cores = std::max<std::int64_t>(device_profile(queue).compute_units, 1);
  const auto parts = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(ceil_div(kItemsPerCore * cores, places)), 1, strips(tile));
  const Sizes size{filters, channels, pitch,
                   static_cast<std::int64_t>(ceil_div(strips(tile), parts))};
  const Steps step{v_step, m_step};
  OpArgs()
      .tensor(u)
      .tensor(v)
      .tensor(m)
      .by_value(&size, sizeof size)
      .by_value(&step, sizeof step)
      .enqueue(queue, kernel,
               {static_cast<std::int64_t>(ceil_div(strips(tile), size.strips)), places}, {1, 1});
}

}  // namespace netcl::conv
