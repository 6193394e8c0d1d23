// How much local memory the arguments of a launch get, on drivers that are wrong about it.
#pragma once

#include <cstddef>
#include <span>

#include "cl/cl.h"
#include "netcl/capabilities.h"
#include "netcl/kernel.h"

namespace netcl {

// Mesa's zink gives every launch of a program the local memory of its first one: a later launch
// with larger __local arguments reads and writes beyond it, which is silent and wrong.
bool keeps_first_local_size(const DeviceProfile& profile);

// What the kernel's own __local variables leave of the device's local memory.
std::size_t free_local_bytes(const DeviceProfile& profile, const cl::KernelLimits& limits);

// What the local argument `index` has to ask for so that all of them have `all` bytes together in
// every launch: whole units of the largest alignment, so that nothing lies between them, and the
// first one takes the rest.
std::size_t filling_bytes(std::span<const KernelArg> args, std::size_t index, std::size_t all);

// The size to give the driver for the local argument `index`: its own, except on such drivers.
std::size_t local_argument_bytes(const Device& device, const cl::KernelLimits& limits,
                                 std::span<const KernelArg> args, std::size_t index);

}  // namespace netcl
