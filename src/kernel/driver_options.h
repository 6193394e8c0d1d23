// Options that programs are built with on some drivers, against the defects of a compiler or an
// interpreter.
#pragma once

#include <string_view>

#include "netcl/capabilities.h"

namespace netcl {

// Oclgrind takes true in a vector for 255 when optimised code widens it without sign: no
// optimisation there. Empty elsewhere.
std::string_view driver_options(const ExtendedDeviceProfile& profile);

}  // namespace netcl
