// What the view ops are tried on.
#pragma once

#include "ops/op.h"

namespace netcl {

std::vector<OpSample> reshape_samples();
std::vector<OpSample> transpose_samples();
std::vector<OpSample> permute_samples();
std::vector<OpSample> expand_samples();
std::vector<OpSample> narrow_samples();

}  // namespace netcl
