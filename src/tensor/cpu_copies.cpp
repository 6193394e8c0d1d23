// Which of the CPUs' kernels makes a copy, and its tiles; parts of fills.
#include "tensor/cpu_copies.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "device/caches.h"
#include "device/driver_limits.h"
#include "device/vector_unit.h"
#include "kernel/builtin.h"
#include "kernel/launch.h"
#include "netcl/capabilities.h"
#include "tensor/kernels.h"

namespace netcl {
namespace {

// A work-item's part of a copy in runs: a start costs less than the least, and the most leaves
// enough parts for all cores to end together.
constexpr std::int64_t kLeastPart = 1 << 14, kMostPart = 1 << 17, kPartsPerUnit = 8;  // bytes
// Of the other kernels, in elements: what is read and written by columns stays in the first cache.
constexpr std::int64_t kSide = 64, kTile = kSide * kSide;

// The axes with the ones first that a tile is cut from, as kernel axes are: innermost first.
struct CopyTiles {
  struct alignas(32) Tile {
    std::int64_t size[2], count[2];
  };
  KernelAxes axes;
  Tile tile{};

  // Tiles of `side` along axis 0 and `area` elements; the last along an axis takes what is left.
  CopyTiles(std::span<const LoopAxis> order, std::int64_t side, std::int64_t area) : axes(order) {
    tile.size[0] = std::min(axes.sizes[0], std::max(side, area / axes.sizes[1]));
    tile.size[1] = std::clamp<std::int64_t>(area / tile.size[0], 1, axes.sizes[1]);
    for (int i = 0; i < 2; ++i) tile.count[i] = axes.sizes[i] / tile.size[i];
  }

  std::uint64_t count() const {
    return static_cast<std::uint64_t>(axes.count / axes.sizes[0] / axes.sizes[1] * tile.count[0] *
                                      tile.count[1]);
  }
};

void enqueue_tiles(const Queue& queue, const std::shared_ptr<detail::KernelState>& kernel,
                   const CopyTiles& tiles, const Buffer& to, std::int64_t to_offset,
                   const Buffer& from, std::int64_t from_offset) {
  const auto& axes = tiles.axes;
  const KernelArg args[] = {KernelArg(from),
                            KernelArg(to),
                            KernelArg(tiles.count()),
                            KernelArg(to_offset),
                            KernelArg(from_offset),
                            KernelArg::by_value(axes.sizes, sizeof axes.sizes),
                            KernelArg::by_value(axes.to, sizeof axes.to),
                            KernelArg::by_value(axes.from, sizeof axes.from),
                            KernelArg::by_value(&tiles.tile, sizeof tiles.tile)};
  enqueue_kernel(queue, *kernel, WorkSize(static_cast<std::size_t>(tiles.count())), WorkSize(1),
                 args);
}

using Order = std::vector<LoopAxis>;

// Makes the axis that `at` points to the last but `place`.
void move_to(Order& order, Order::iterator at, std::ptrdiff_t place) {
  std::rotate(at, at + 1, order.end() - place);
}

Order::iterator closest(Order::iterator first, Order::iterator last, std::int64_t LoopAxis::*side) {
  const auto distance = [side](const LoopAxis& axis) {
    return axis.size == 1 ? std::numeric_limits<std::int64_t>::max() : std::abs(axis.*side);
  };
  return std::min_element(first, last,
                          [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

std::int64_t elements_of(const Order& order) {
  std::int64_t count = 1;
  for (const auto& axis : order) count *= axis.size;
  return count;
}

// Bytes of a work-item that goes through memory from one end to the other.
std::int64_t part_of(std::int64_t bytes, const ExtendedDeviceProfile& profile) {
  const std::int64_t parts = kPartsPerUnit * std::max<std::int64_t>(profile.compute_units, 1);
  return std::clamp(bytes / parts, kLeastPart, kMostPart);
}

std::string longest_define(const ExtendedDeviceProfile& profile) {
  return fmt::format("LONGEST={}", detail::max_vector_bytes(profile) < 64 ? 32 : 64);
}

std::string streams_define(std::int64_t bytes, const ExtendedDeviceProfile& profile) {
  return fmt::format("STREAMS={}",
                     detail::outgrow_caches(static_cast<std::uint64_t>(bytes), profile) ? 1 : 0);
}

void copy_runs(const Queue& queue, std::int64_t size, Order order, const Buffer& to,
               std::int64_t to_offset, const Buffer& from, std::int64_t from_offset) {
  const auto& profile = device_profile(queue);
  for (auto& axis : order) axis.to *= size, axis.from *= size;
  order.back() = {order.back().size * size, 1, 1};
  const auto bytes = elements_of(order);
  const auto part = part_of(bytes, profile);
  const auto kernel = builtin_kernel(queue, "tensor/kernels/copy_runs.cl", "copy_runs",
                                     {longest_define(profile), streams_define(2 * bytes, profile)});
  enqueue_tiles(queue, kernel, CopyTiles(order, part, part), to, to_offset * size, from,
                from_offset * size);
}

std::shared_ptr<detail::KernelState> transposed_kernel(const Queue& queue, DType dtype,
                                                       std::int64_t count) {
  const auto& profile = device_profile(queue);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const auto bytes =
      std::min(detail::vector_unit_floats(profile) * 4, detail::max_vector_bytes(profile));
  return builtin_kernel(
      queue, "tensor/kernels/copy_transposed.cl", "copy_transposed",
      {fmt::format("T={}", opaque_type(dtype)), fmt::format("WORDS={}", size == 4 ? 1 : 0),
       fmt::format("VEC={}", std::clamp<std::int64_t>(bytes / size, 4, 16)),
       streams_define(2 * count * size, profile)});
}

}  // namespace

void enqueue_cpu_copy(const Queue& queue, DType dtype, std::span<const LoopAxis> axes,
                      const Buffer& to, std::int64_t to_offset, const Buffer& from,
                      std::int64_t from_offset) {
  Order order(axes.begin(), axes.end());
  if (order.size() < 2) order.insert(order.begin(), 2 - order.size(), {1, 0, 0});
  // Axis 0: where the target lies closest together.
  move_to(order, closest(order.begin(), order.end(), &LoopAxis::to), 0);
  const auto run = order.back();
  if (run.to == 1 && run.from == 1)
    return copy_runs(queue, static_cast<std::int64_t>(size_of(dtype)), std::move(order), to,
                     to_offset, from, from_offset);
  // Axis 1: where the source does.
  move_to(order, closest(order.begin(), order.end() - 1, &LoopAxis::from), 1);
  const bool transposed = run.to == 1 && (order.end() - 2)->from == 1;
  const auto kernel = transposed
                          ? transposed_kernel(queue, dtype, elements_of(order))
                          : builtin_kernel(queue, "tensor/kernels/copy_tiles.cl", "copy_tiles",
                                           {fmt::format("T={}", opaque_type(dtype))});
  enqueue_tiles(queue, kernel, CopyTiles(order, kSide, kTile), to, to_offset, from, from_offset);
}

void enqueue_cpu_fill(const Queue& queue, const Buffer& buffer, std::size_t offset,
                      std::size_t bytes, const void* pattern, std::size_t pattern_bytes) {
  const auto& profile = device_profile(queue);
  std::uint64_t eight = 0;
  for (std::size_t at = 0; at < sizeof eight; at += pattern_bytes)
    std::memcpy(reinterpret_cast<std::byte*>(&eight) + at, pattern, pattern_bytes);
  const auto n = static_cast<std::int64_t>(bytes);
  const auto part = part_of(n, profile) / 64 * 64;  // whole vectors
  const auto kernel = builtin_kernel(queue, "tensor/kernels/fill_parts.cl", "fill_parts",
                                     {longest_define(profile), streams_define(n, profile)});
  const KernelArg args[] = {KernelArg(buffer), KernelArg(static_cast<std::uint64_t>(offset)),
                            KernelArg(static_cast<std::uint64_t>(bytes)),
                            KernelArg(static_cast<std::uint64_t>(part)), KernelArg(eight)};
  enqueue_kernel(queue, *kernel, WorkSize(static_cast<std::size_t>((n + part - 1) / part)),
                 WorkSize(1), args);
}

}  // namespace netcl
