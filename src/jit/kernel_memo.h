// Compiled kernels of groups, found by the structure of the group.
#pragma once

#include <functional>
#include <string>

#include "jit/group_program.h"
#include "ops/kernels.h"

namespace netcl::fusion {

// The kernels of a group, in the order of `names`. `source` is asked at the first use of a key on a
// device. The key begins with that of `program`; what its addresses belong to is kept alive.
std::vector<KernelPtr> memo_kernels(const Queue& queue, const GroupProgram& program,
                                    const std::string& key, const std::vector<const char*>& names,
                                    const std::function<std::string()>& source);

}  // namespace netcl::fusion
