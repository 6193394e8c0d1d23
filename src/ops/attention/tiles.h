// Attention on CPUs: tiles of queries and keys in registers (tiles.cl).
#pragma once

#include "ops/attention/plan.h"

namespace netcl {

OpVariant attention_tiles();

}  // namespace netcl
