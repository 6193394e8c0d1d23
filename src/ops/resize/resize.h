// Ops that change the size of images and the border of arrays.
#pragma once

#include "ops/op.h"

namespace netcl {

OpDef pad_op();
OpDef upsample_op(bool bilinear);
OpDef upsample_backward_op(bool bilinear);

}  // namespace netcl
