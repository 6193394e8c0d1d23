#pragma once

#include "ops/op.h"

namespace netcl::conv {

std::vector<OpSample> forward_samples();
std::vector<OpSample> forward_tuning();  // the sizes of well-known networks
std::vector<OpSample> backward_data_samples();
std::vector<OpSample> backward_weights_samples();

}  // namespace netcl::conv
