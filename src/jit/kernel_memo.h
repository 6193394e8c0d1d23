// Compiled kernels of groups, found by the structure of the group.
#pragma once

#include <functional>
#include <string>

#include "ops/kernels.h"

namespace netcl::fusion {

// The kernels of a program, in the order of `names`. `source` is asked at the first use of a key
// on a device.
std::vector<KernelPtr> memo_kernels(const Queue& queue, const std::string& key,
                                    const std::vector<const char*>& names,
                                    const std::function<std::string()>& source);

}  // namespace netcl::fusion
