// Strided, converting copies in host memory: the CPU backend, and host arrays on their way in.
#pragma once

#include "netcl/dtype.h"
#include "tensor/strided.h"

namespace netcl {

// `to` and `from` point at the first element of each side.
void host_copy(const std::vector<LoopAxis>& axes, void* to, DType to_type, const void* from,
               DType from_type);

}  // namespace netcl
