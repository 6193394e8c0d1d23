// What the program cache does differently on some drivers: options against the defects of a
// compiler or an interpreter, and what need not be kept.
#pragma once

#include <string_view>

#include "netcl/capabilities.h"

namespace netcl {

// Oclgrind takes true in a vector for 255 when optimised code widens it without sign: no
// optimisation there. Empty elsewhere.
std::string_view driver_options(const ExtendedDeviceProfile& profile);

// Whether the driver keeps compiled programs on disk itself, and asking for one costs. PoCL
// compiles a kernel when it is launched, for the size of its work-groups; asked for a program's
// binary, it compiles all of its kernels once more, for any size.
bool keeps_programs_itself(const ExtendedDeviceProfile& profile);

}  // namespace netcl
