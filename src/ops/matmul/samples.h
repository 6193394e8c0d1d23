#pragma once

#include "ops/op.h"

namespace netcl {

std::vector<OpSample> matmul_samples();
std::vector<OpSample> matmul_tuning();
std::vector<OpSample> linear_samples();

}  // namespace netcl
