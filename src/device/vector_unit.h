// The vector unit that a CPU's kernels are written for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "netcl/capabilities.h"

namespace netcl::detail {

// The floats of one of its vectors: 4, 8 or 16, which is what OpenCL C has types for.
inline std::int64_t vector_unit_floats(const ExtendedDeviceProfile& profile) {
  return std::clamp<std::int64_t>(profile.native_vector_width_float, 4, 16);
}

}  // namespace netcl::detail
