// Products that apply what follows them to each result while it is at hand.
#pragma once

#include "jit/schedule.h"

namespace netcl::fusion {

// Takes the item into the group of the product that it follows, as its bias or its activation.
// False when it is neither, or when somebody else needs the value in between.
bool join_epilogue(Schedule& schedule, int item);

// Computes a product with what was taken in.
void run_product(const Schedule& schedule, const Group& group);

}  // namespace netcl::fusion
