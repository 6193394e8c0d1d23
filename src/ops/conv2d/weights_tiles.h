// The gradient with respect to w on CPU devices, in tiles of registers.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl::conv {

OpVariant weights_tiles_variant();

}  // namespace netcl::conv
