// What is to be known of a driver besides its device (docs/devices.md). Asked from a profile, so
// that rules, kernels and caches do not look at names and versions themselves.
#pragma once

#include <cstdint>

#include "netcl/capabilities.h"

namespace netcl::detail {

// The longest vector, in bytes, that kernels may have: that of a double16, but 32 on AMD processors
// with PoCL before 3.1. Its LLVM takes those with AVX-512 for older ones without: it selects
// vectors of 64 bytes, has no instructions for them, and ends the process or never comes back.
std::int64_t max_vector_bytes(const ExtendedDeviceProfile& profile);

// Whether the driver keeps compiled programs on disk itself, and asking for one costs. PoCL
// compiles a kernel when it is launched, for the size of its work-groups; asked for a program's
// binary, it compiles all of its kernels once more, for any size.
bool keeps_programs_itself(const ExtendedDeviceProfile& profile);

}  // namespace netcl::detail
