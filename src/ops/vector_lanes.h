// How long vectors in kernels may be where a kernel is not bound to the width of the vector unit.
#pragma once

#include <algorithm>

#include "device/driver_limits.h"
#include "netcl/dtype.h"

namespace netcl {

// At most `wanted`: as many elements of the dtype as the driver can compile vectors of.
inline std::int64_t vector_lanes(const ExtendedDeviceProfile& profile, std::int64_t wanted,
                                 DType dtype) {
  return std::min(wanted,
                  detail::max_vector_bytes(profile) / static_cast<std::int64_t>(size_of(dtype)));
}

}  // namespace netcl
