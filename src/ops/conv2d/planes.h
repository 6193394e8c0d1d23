// Convolutions and gradients of few channels per group on CPU devices.
#pragma once

#include "ops/conv2d/sizes.h"

namespace netcl::conv {

constexpr std::int64_t kFewChannels = 8;  // of dx, per group: more are a matrix product

OpVariant planes_variant();
OpVariant data_planes_variant();
OpVariant data_phases_variant();
OpVariant weights_planes_variant();

}  // namespace netcl::conv
