// The files of this folder and the ops they declare.
#pragma once

#include "ops/op.h"
#include "ops/softmax/rows.h"

namespace netcl {

std::vector<OpDef> softmax_ops();
std::vector<OpDef> cross_entropy_ops();
std::vector<OpDef> labelled_mean_ops();
std::vector<OpDef> topk_ops();
std::vector<OpDef> cumsum_ops();

// Runs a topk on a CPU; false where it cannot.
bool topk_on_cpu(const OpCall& call, const RowPlan& plan);

}  // namespace netcl
