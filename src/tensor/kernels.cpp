// Defines and launches of copy.cl, cast.cl and random.cl.
#include "tensor/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "kernel/builtin.h"

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

void enqueue_copy_tiles(const Queue& queue, DType dtype, std::span<const LoopAxis> axes,
                        const Buffer& to, std::int64_t to_offset, const Buffer& from,
                        std::int64_t from_offset) {
  std::vector<LoopAxis> order(axes.begin(), axes.end());
  if (order.size() < 2) order.insert(order.begin(), {1, 0, 0});
  const bool runs = order.back().to == 1 && order.back().from == 1;
  // The second axis: the neighbour, or the one along which the source lies closest together.
  const auto second = order.end() - 2;
  if (!runs)
    std::rotate(std::min_element(order.begin(), order.end() - 1,
                                 [](const LoopAxis& a, const LoopAxis& b) {
                                   return std::abs(a.from) < std::abs(b.from);
                                 }),
                second, second + 1);
  const KernelAxes kernel_axes(order);
  struct alignas(32) Tile {
    std::int64_t size[2], count[2];
  } tile{};
  constexpr std::int64_t kRun = 8192, kSide = 32;
  tile.size[0] = std::min(kernel_axes.sizes[0], runs ? kRun : kSide);
  tile.size[1] = std::clamp<std::int64_t>((runs ? kRun : kSide * kSide) / tile.size[0], 1,
                                          kernel_axes.sizes[1]);
  for (int i = 0; i < 2; ++i)
    tile.count[i] = (kernel_axes.sizes[i] + tile.size[i] - 1) / tile.size[i];
  const auto tiles =
      static_cast<std::uint64_t>(kernel_axes.count / kernel_axes.sizes[0] / kernel_axes.sizes[1] *
                                 tile.count[0] * tile.count[1]);
  const auto kernel = builtin_kernel(
      queue, "tensor/kernels/copy_tiles.cl", "copy_tiles",
      {fmt::format("T={}", opaque_type(dtype)), fmt::format("RUNS={}", runs ? 1 : 0)});
  const ElementLaunch launch{kernel, 1, 1};
  enqueue_elements(queue, launch, tiles, from, to, tiles, to_offset, from_offset,
                   KernelArg::by_value(kernel_axes.sizes, sizeof kernel_axes.sizes),
                   KernelArg::by_value(kernel_axes.to, sizeof kernel_axes.to),
                   KernelArg::by_value(kernel_axes.from, sizeof kernel_axes.from),
                   KernelArg::by_value(&tile, sizeof tile));
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

}  // namespace netcl
