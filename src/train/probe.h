// Does a model fit the data?
#pragma once

#include "netcl/nn.h"

namespace netcl::train {

// The shape of what the model makes of one image (channels, height, width), on the thread's active
// device. Throws what the layers throw.
Shape probe_model(nn::Module& model, const Shape& image);

}  // namespace netcl::train
