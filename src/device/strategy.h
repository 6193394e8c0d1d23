// The decision behind kernel_strategy, for callers that read the environment themselves.
#pragma once

#include <string_view>

#include "netcl/capabilities.h"

namespace netcl::detail {

// "portable", "optimized" or "auto": the value of NETCL_KERNEL_STRATEGY. Anything else is one
// warning and means "auto".
std::string_view asked_strategy();

// "portable" or "optimized".
std::string_view decide_strategy(std::string_view asked, const DeviceProfile& profile);

}  // namespace netcl::detail
