// What kernels need to know of a device's caches.
#pragma once

#include <cstdint>

#include "netcl/capabilities.h"

namespace netcl::detail {

// Operands that do not stay in the last cache for the next op anyway need not pass through it.
inline bool outgrow_caches(std::uint64_t bytes, const ExtendedDeviceProfile& profile) {
  return bytes > profile.global_mem_cache_size / 2;
}

}  // namespace netcl::detail
