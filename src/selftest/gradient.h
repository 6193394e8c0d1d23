// Gradients against central differences of the reference, in double precision.
#pragma once

#include "ops/op.h"

namespace netcl::selftest_detail {

// Empty, or how the op's backward differs from the differences on this sample.
std::string check_gradient(const OpDef& op, const OpSample& sample, std::uint64_t seed,
                           const Queue& queue);

}  // namespace netcl::selftest_detail
