// Convolutions and gradients of few channels per group on CPU devices.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl::conv {

OpVariant planes_variant();
OpVariant data_planes_variant();
OpVariant weights_planes_variant();

}  // namespace netcl::conv
