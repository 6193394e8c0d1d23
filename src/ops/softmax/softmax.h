// The four ops of softmax.cpp, for its parts.
#pragma once

#include "ops/softmax/rows.h"

namespace netcl {

enum class SoftmaxKind { softmax, log_softmax, softmax_backward, log_softmax_backward };

// The CPU backend.
void host_softmax(SoftmaxKind kind, const RowPlan& plan, const OpCall& call);

}  // namespace netcl
