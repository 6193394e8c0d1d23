// Transformed filters of Winograd's convolutions on CPUs (winograd_filters.cl), kept while the
// weights do not change.
#pragma once

#include "ops/op.h"

namespace netcl::conv {

// Of a call's input 1. patch: 6 for tiles of 4x4, 4 for 2x2. One after the other, or in blocks of
// `vec` filters (winograd_strips.cl).
Tensor vector_filters(const OpCall& call, std::int64_t patch, std::int64_t vec, bool in_blocks);

}  // namespace netcl::conv
