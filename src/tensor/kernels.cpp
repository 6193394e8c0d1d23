// Defines and launches of copy.cl, cast.cl and random.cl.
#include "tensor/kernels.h"

#include "base/format.h"

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
