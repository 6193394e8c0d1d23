// Copies without conversion on OpenCL devices that are CPUs, a tile per work-item: whole runs,
// square blocks turned around in registers, or element by element. And fills, a part per work-item.
#pragma once

#include <span>

#include "netcl/tensor.h"
#include "tensor/strided.h"

namespace netcl {

// At most as many axes as a kernel takes (kMaxKernelAxes), outermost first; offsets in elements.
void enqueue_cpu_copy(const Queue& queue, DType dtype, std::span<const LoopAxis> axes,
                      const Buffer& to, std::int64_t to_offset, const Buffer& from,
                      std::int64_t from_offset);

// With less than so many bytes a command of the driver's own, which works on one core, loses too
// little to compile a kernel for.
inline constexpr std::size_t kWorthCores = 2 << 20;

// `pattern_bytes` divides eight.
void enqueue_cpu_fill(const Queue& queue, const Buffer& buffer, std::size_t offset,
                      std::size_t bytes, const void* pattern, std::size_t pattern_bytes);

}  // namespace netcl
