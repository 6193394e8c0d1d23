// A chain of elements and the reduction that alone uses it, in one kernel.
#pragma once

#include "jit/schedule.h"

namespace netcl::fusion {

// The last item of the group is the reduction, the one before it the chain's value.
void run_reduction(const Schedule& schedule, const Group& group);

}  // namespace netcl::fusion
