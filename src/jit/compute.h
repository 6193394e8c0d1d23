// Computing deferred nodes. To be called with the engine locked.
#pragma once

#include "jit/node.h"

namespace netcl::fusion {

// Afterwards the results of `targets` are there. What they need is computed with them, and stored
// where somebody else can see it; other values in between are not.
void compute_nodes(const std::vector<NodePtr>& targets);

}  // namespace netcl::fusion
