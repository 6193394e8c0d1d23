// From pixels to what a model sees.
#pragma once

#include <utility>
#include <vector>

#include "netcl/train.h"

namespace netcl::train {

// (u / 255 - mean) / deviation = u * scale + shift, per channel.
std::pair<std::vector<float>, std::vector<float>> scale_and_shift(const Normalisation& given);

}  // namespace netcl::train
