// The gradient with respect to w on CPU devices: in tiles of registers, and as Winograd's for 3x3.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl::conv {

OpVariant weights_tiles_variant();
OpVariant weights_winograd_variant();

}  // namespace netcl::conv
