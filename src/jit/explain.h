// Tells explain() what is computed, where somebody asked.
#pragma once

#include "jit/reduce_group.h"

namespace netcl::fusion {

void explain_elements(const Schedule& schedule, const Group& group, const std::vector<int>& items,
                      const GroupProgram& program);
void explain_reduction(const Schedule& schedule, const Group& group, const ReducedChain& chain);
void explain_single(const Schedule& schedule, const Group& group);
void explain_product(const Schedule& schedule, const Group& group);

}  // namespace netcl::fusion
