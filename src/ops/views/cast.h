// Conversion of elements as an op.
#pragma once

#include "ops/op.h"

namespace netcl {

OpDef cast_op();

}  // namespace netcl
