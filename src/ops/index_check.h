// Indices come from the caller and may point anywhere. This is the one place that finds out.
#pragma once

#include "ops/op.h"

namespace netcl {

// DtypeError unless the indices are int32 or int64. For infer.
void require_index_dtype(const OpSpec& spec, std::size_t input);

// ArgumentError naming the first position whose index is not in [0, size). Ops call it before the
// work that uses the indices, so nothing is ever read or written out of bounds. On an OpenCL device
// it costs one small kernel and the wait for its answer, four bytes: the queue is drained once per
// call, which is the price of an error at the call that caused it. The work itself stays
// asynchronous. A captured step does the same at each replay. `indices` must be contiguous.
void check_indices(const OpDef& op, const Tensor& indices, std::int64_t size);

// The same after a kernel that has checked the indices itself, and read something harmless in the
// place of what bad ones name: `bad` holds the positions of bad ones, or INT_MAX.
void judge_indices(const OpDef& op, const Tensor& indices, std::int64_t size, const Tensor& bad);

}  // namespace netcl
