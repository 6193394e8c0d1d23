// Defines and launches of copy.cl, cast.cl and random.cl.
#include "tensor/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "device/driver_limits.h"
#include "kernel/builtin.h"
#include "netcl/capabilities.h"

namespace netcl {
namespace {

// 64-bit division is several times slower on most devices.
std::string index_define(std::uint64_t count) {
  return fmt::format("INDEX={}", count < INT32_MAX ? "uint" : "ulong");
}

std::string rank_define(std::size_t rank) {
  return fmt::format("RANK={}", std::max<std::size_t>(rank, 1));
}

template <class... Args>
void enqueue_elements(const Queue& queue, const ElementLaunch& launch, std::uint64_t n,
                      const Args&... args) {
  const std::array<KernelArg, sizeof...(Args)> list{KernelArg(args)...};
  enqueue_kernel(queue, *launch.kernel, WorkSize(launch.global(n)), WorkSize(launch.local), list);
}

}  // namespace

const char* opaque_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

std::int64_t cpu_part(std::int64_t count, const ExtendedDeviceProfile& profile) {
  // Steps of all kernels, and eight parts for each core where there is enough to do.
  constexpr std::int64_t kStep = 64, kLeast = 1024, kMost = 16384;
  const std::int64_t parts = 8 * std::max<std::int64_t>(profile.compute_units, 1);
  return std::clamp((count / parts + kStep - 1) / kStep * kStep, kLeast, kMost);
}

KernelAxes::KernelAxes(std::span<const LoopAxis> axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& axis = axes[axes.size() - 1 - i];
    sizes[i] = axis.size;
    to[i] = axis.to;
    from[i] = axis.from;
    count *= axis.size;
  }
}

ElementKernel copy_kernel(DType dtype, std::size_t rank, std::uint64_t count) {
  return {"tensor/kernels/copy.cl",
          "copy",
          {fmt::format("T={}", opaque_type(dtype)), index_define(count), rank_define(rank)},
          opaque_type(dtype)};
}

ElementKernel cast_kernel(DType from, DType to, std::size_t rank, std::uint64_t count) {
  return {"tensor/kernels/cast.cl",
          "cast",
          {fmt::format("SRC_{}", name_of(from)), fmt::format("DST_{}", name_of(to)),
           index_define(count), rank_define(rank)},
          fmt::format("{},{}", name_of(from), name_of(to))};
}

void enqueue_copy(const Queue& queue, const ElementLaunch& launch, const KernelAxes& axes,
                  const Buffer& to, std::int64_t to_offset, const Buffer& from,
                  std::int64_t from_offset) {
  enqueue_elements(queue, launch, static_cast<std::uint64_t>(axes.count), from, to, axes.count,
                   to_offset, from_offset, KernelArg::by_value(axes.sizes, sizeof axes.sizes),
                   KernelArg::by_value(axes.to, sizeof axes.to),
                   KernelArg::by_value(axes.from, sizeof axes.from));
}

namespace {

// The tiles of a cast on CPUs: cuts of axis 0, along which the target is walked, and of axis 1.
struct CastTiles {
  struct alignas(32) Tile {
    std::int64_t size[2], count[2];
  };
  bool runs;  // both sides are contiguous along axis 0
  KernelAxes axes;
  Tile tile{};
  std::uint64_t count;

  // Runs are cut into pieces of `run` elements.
  CastTiles(std::span<const LoopAxis> of, std::int64_t run);
};

// Shorter ones with gaps between them are elements that lie anywhere.
constexpr std::int64_t kLeastRun = 32;

bool is_run(std::span<const LoopAxis> axes) {
  return !axes.empty() && axes.back().to == 1 && axes.back().from == 1;
}

std::vector<LoopAxis> tiled_order(std::span<const LoopAxis> axes) {
  std::vector<LoopAxis> order(axes.begin(), axes.end());
  if (order.size() < 2) order.insert(order.begin(), 2 - order.size(), {1, 0, 0});
  // The second axis: the neighbour, or the one along which the source lies closest together.
  const auto second = order.end() - 2;
  if (!is_run(order))
    std::rotate(std::min_element(order.begin(), order.end() - 1,
                                 [](const LoopAxis& a, const LoopAxis& b) {
                                   return std::abs(a.from) < std::abs(b.from);
                                 }),
                second, second + 1);
  return order;
}

CastTiles::CastTiles(std::span<const LoopAxis> of, std::int64_t run)
    : runs(is_run(of) && (of.size() == 1 || of.back().size >= kLeastRun)), axes(tiled_order(of)) {
  constexpr std::int64_t kSide = 32;
  const auto most = runs ? run : kSide * kSide;  // elements
  tile.size[0] = std::min(axes.sizes[0], runs ? run : kSide);
  tile.size[1] = std::clamp<std::int64_t>(most / tile.size[0], 1, axes.sizes[1]);
  tile.size[0] = std::clamp<std::int64_t>(most / tile.size[1], 1, axes.sizes[0]);
  for (int i = 0; i < 2; ++i) tile.count[i] = (axes.sizes[i] + tile.size[i] - 1) / tile.size[i];
  count = static_cast<std::uint64_t>(axes.count / axes.sizes[0] / axes.sizes[1] * tile.count[0] *
                                     tile.count[1]);
}

void enqueue_tiles(const Queue& queue, const std::shared_ptr<detail::KernelState>& kernel,
                   const CastTiles& tiles, const Buffer& to, std::int64_t to_offset,
                   const Buffer& from, std::int64_t from_offset) {
  enqueue_elements(queue, {kernel, 1, 1}, tiles.count, from, to, tiles.count, to_offset,
                   from_offset, KernelArg::by_value(tiles.axes.sizes, sizeof tiles.axes.sizes),
                   KernelArg::by_value(tiles.axes.to, sizeof tiles.axes.to),
                   KernelArg::by_value(tiles.axes.from, sizeof tiles.axes.from),
                   KernelArg::by_value(&tiles.tile, sizeof tiles.tile));
}

}  // namespace

void enqueue_cast_tiles(const Queue& queue, DType to_type, DType from_type,
                        std::span<const LoopAxis> axes, const Buffer& to, std::int64_t to_offset,
                        const Buffer& from, std::int64_t from_offset) {
  const auto& profile = device_profile(queue);
  std::int64_t count = 1;
  for (const auto& axis : axes) count *= axis.size;
  const CastTiles tiles(axes, cpu_part(count, profile));
  // Past the last cache goes what it does not keep anyway, and a result that would push out the
  // larger source.
  const auto bytes = static_cast<std::uint64_t>(count) * (size_of(to_type) + size_of(from_type));
  const auto cache = profile.global_mem_cache_size;
  const bool streams =
      bytes > cache || (bytes > cache / 2 && size_of(to_type) < size_of(from_type));
  // The short types are computed in float or int. Sixteen of the long ones are two vectors anyway.
  const auto widest = std::max<std::size_t>({size_of(to_type), size_of(from_type), 4});
  const auto lanes = std::min<std::int64_t>(64, detail::max_vector_bytes(profile)) /
                     static_cast<std::int64_t>(widest);
  const auto kernel = builtin_kernel(
      queue, "tensor/kernels/cast_tiles.cl", "cast_tiles",
      {fmt::format("SRC_{}", name_of(from_type)), fmt::format("DST_{}", name_of(to_type)),
       fmt::format("VEC={}", lanes), fmt::format("STREAMS={}", streams ? 1 : 0),
       fmt::format("RUNS={}", tiles.runs ? 1 : 0)});
  enqueue_tiles(queue, kernel, tiles, to, to_offset, from, from_offset);
}

ElementKernel random_kernel(DType dtype, Distribution distribution) {
  const bool normal = distribution == Distribution::normal;
  return {"tensor/kernels/random.cl",
          "random",
          {fmt::format("DST_{}", name_of(dtype)), fmt::format("NORMAL={}", normal ? 1 : 0)},
          fmt::format("{}{}", name_of(dtype), normal ? ",normal" : "")};
}

std::uint64_t random_blocks(DType dtype, std::int64_t count) {
  const std::int64_t per_block = dtype == DType::float64 ? 2 : 4;
  return static_cast<std::uint64_t>((count + per_block - 1) / per_block);
}

void enqueue_random(const Queue& queue, const ElementLaunch& launch, const Buffer& to, DType dtype,
                    std::int64_t count, std::uint64_t seed) {
  enqueue_elements(queue, launch, random_blocks(dtype, count), to, count, seed);
}

void enqueue_random_runs(const Queue& queue, const Buffer& to, DType dtype, std::int64_t count,
                         std::uint64_t seed, Distribution distribution) {
  const auto& profile = device_profile(queue);
  const auto bytes = std::min<std::int64_t>(64, detail::max_vector_bytes(profile));
  auto defines = random_kernel(dtype, distribution).defines;
  defines.insert(defines.end(), {fmt::format("BLOCKS={}", bytes / 8), "SRC_float32=1",
                                 fmt::format("VEC={}", bytes / 4)});
  const auto kernel =
      builtin_kernel(queue, "tensor/kernels/random_runs.cl", "random_runs", defines);
  const auto part = cpu_part(count, profile);
  const ElementLaunch launch{kernel, 1, 1};
  enqueue_elements(queue, launch, static_cast<std::uint64_t>((count + part - 1) / part), to, count,
                   seed, part);
}

}  // namespace netcl
