// Attention on CPUs: tiles of queries and keys in registers (tiles.cl), and what they are not for.
#pragma once

#include "ops/attention/plan.h"

namespace netcl {

OpVariant attention_few();  // of queries, which share too little for tiles (few.cl)
OpVariant attention_tiles();

}  // namespace netcl
