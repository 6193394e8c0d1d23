// Attention on the CPU backend.
#pragma once

#include "ops/op.h"

namespace netcl {

void attention_on_host(const OpCall& call);
void attention_backward_on_host(const OpCall& call);

}  // namespace netcl
