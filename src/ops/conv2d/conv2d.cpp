// The ops of 2-D convolution.
#include "ops/op.h"

namespace netcl {

std::vector<OpDef> ops_of_conv2d() { return {}; }

}  // namespace netcl
