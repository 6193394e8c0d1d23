// Copies without conversion on OpenCL devices that are CPUs, a tile per work-item: whole runs,
// square blocks turned around in registers, or element by element.
#pragma once

#include <span>

#include "netcl/tensor.h"
#include "tensor/strided.h"

namespace netcl {

// At most as many axes as a kernel takes (kMaxKernelAxes), outermost first; offsets in elements.
void enqueue_cpu_copy(const Queue& queue, DType dtype, std::span<const LoopAxis> axes,
                      const Buffer& to, std::int64_t to_offset, const Buffer& from,
                      std::int64_t from_offset);

}  // namespace netcl
