#pragma once

#include "ops/op.h"

namespace netcl {

std::vector<OpSample> attention_samples();
std::vector<OpSample> attention_backward_samples();

}  // namespace netcl
