// A copy of images with zeros around them, in the accumulator's type.
#pragma once

#include "ops/conv2d/launch.h"

namespace netcl::conv {

// (N, C, height, width): x begins at the padding of `s`, what lies outside of it is zero.
Tensor padded_images(const Queue& queue, const Tensor& x, const ConvSizes& s, std::int64_t height,
                     std::int64_t width);

}  // namespace netcl::conv
