// Element code on the CPU backend: blocks of elements are converted to the compute type, computed
// by a loop that the compiler vectorises, and converted back.
#pragma once

#include "ops/elementwise/element_code.h"
#include "ops/elementwise/program.h"

namespace netcl {

// `args.inputs[i]` (or the next scalar input) is what the code calls `names[i]`.
void host_elements(const ElementCode& code, DType compute, const std::vector<ElementName>& names,
                   const ElementArgs& args);

}  // namespace netcl
