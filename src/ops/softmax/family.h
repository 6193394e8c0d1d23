// The files of this folder and the ops they declare.
#pragma once

#include "ops/op.h"

namespace netcl {

std::vector<OpDef> softmax_ops();
std::vector<OpDef> cross_entropy_ops();
std::vector<OpDef> labelled_mean_ops();
std::vector<OpDef> topk_ops();
std::vector<OpDef> cumsum_ops();

}  // namespace netcl
