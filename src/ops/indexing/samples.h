// What the ops with indices are tried on.
#pragma once

#include "ops/op.h"

namespace netcl {

std::vector<OpSample> index_select_samples();
std::vector<OpSample> gather_samples();
std::vector<OpSample> embedding_samples();
std::vector<OpSample> index_add_samples();
std::vector<OpSample> scatter_add_samples();
std::vector<OpSample> one_hot_samples();
std::vector<OpSample> triangle_samples();

}  // namespace netcl
