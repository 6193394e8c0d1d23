// The tensor layer's kernels: which defines they take and how they are enqueued, for the backend
// and for tuning alike.
#pragma once

#include <span>

#include "netcl/tensor.h"
#include "tensor/element_kernel.h"
#include "tensor/strided.h"

namespace netcl {

inline constexpr std::size_t kMaxKernelAxes = 8;

// The unsigned OpenCL C type that moves an element without looking at it.
const char* opaque_type(DType dtype);

// Up to eight axes as the vectors that the kernels take, innermost first.
struct KernelAxes {
  alignas(64) std::int64_t sizes[kMaxKernelAxes] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(64) std::int64_t to[kMaxKernelAxes] = {};
  alignas(64) std::int64_t from[kMaxKernelAxes] = {};
  std::int64_t count = 1;

  explicit KernelAxes(std::span<const LoopAxis> axes);
};

ElementKernel copy_kernel(DType dtype, std::size_t rank, std::uint64_t count);
ElementKernel cast_kernel(DType from, DType to, std::size_t rank, std::uint64_t count);
void enqueue_copy(const Queue& queue, const ElementLaunch& launch, const KernelAxes& axes,
                  const Buffer& to, std::int64_t to_offset, const Buffer& from,
                  std::int64_t from_offset);

// Conversions on CPUs, tile by tile; `axes` are outermost first, as plan_loops gives them. Copies
// without one: cpu_copies.h.
void enqueue_cast_tiles(const Queue& queue, DType to_type, DType from_type,
                        std::span<const LoopAxis> axes, const Buffer& to, std::int64_t to_offset,
                        const Buffer& from, std::int64_t from_offset);

ElementKernel random_kernel(DType dtype, Distribution distribution);
// Blocks of random words for so many elements: what the kernel counts.
std::uint64_t random_blocks(DType dtype, std::int64_t count);
void enqueue_random(const Queue& queue, const ElementLaunch& launch, const Buffer& to, DType dtype,
                    std::int64_t count, std::uint64_t seed);
// How many elements a work-item of a CPU owns, in kernels that take many at a time.
std::int64_t cpu_part(std::int64_t count, const ExtendedDeviceProfile& profile);
// The same numbers on CPUs, in vectors.
void enqueue_random_runs(const Queue& queue, const Buffer& to, DType dtype, std::int64_t count,
                         std::uint64_t seed, Distribution distribution);

// Makes the kernels known to `netcl tune`.
void register_tensor_tunables();

// The same kernels on memory of their own, to be tuned.
TunableProblem scratch_copy_problem(const Queue& queue, DType from, DType to, std::size_t rank,
                                    std::uint64_t n);
TunableProblem scratch_random_problem(const Queue& queue, DType dtype, Distribution distribution,
                                      std::int64_t count);

}  // namespace netcl
