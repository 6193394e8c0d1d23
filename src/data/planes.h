// Images as files have them, and as networks want them.
#pragma once

#include "netcl/tensor.h"

namespace netcl::data_detail {

// uint8 (height, width, channels) to (channels, height, width).
HostArray to_planes(const HostArray& image);
// And back.
HostArray to_pixels(const HostArray& planes);

}  // namespace netcl::data_detail
