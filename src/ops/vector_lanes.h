// How long vectors in kernels are: as long as the vector unit's, or, where a kernel is not bound to
// its width, as long as the driver can compile them.
#pragma once

#include <algorithm>

#include "device/driver_limits.h"
#include "device/vector_unit.h"
#include "netcl/dtype.h"

namespace netcl {

// How many elements that a kernel computes with in this dtype one vector of the unit holds.
inline std::int64_t unit_lanes(const ExtendedDeviceProfile& profile, DType compute) {
  return detail::vector_unit_floats(profile) * 4 / static_cast<std::int64_t>(size_of(compute));
}

// At most `wanted`: as many elements of the dtype as the driver can compile vectors of.
inline std::int64_t vector_lanes(const ExtendedDeviceProfile& profile, std::int64_t wanted,
                                 DType dtype) {
  return std::min(wanted,
                  detail::max_vector_bytes(profile) / static_cast<std::int64_t>(size_of(dtype)));
}

}  // namespace netcl
