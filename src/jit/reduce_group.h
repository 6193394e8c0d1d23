// A chain of elements and the reduction that alone uses it, in one kernel.
#pragma once

#include "jit/group_program.h"
#include "ops/reduction/reduction.h"

namespace netcl::fusion {

// The chain as rows (outer, reduced, inner), in the order of its loop.
struct ReducedChain {
  GroupProgram program;  // its last value is what is reduced
  ReductionKind kind = ReductionKind::sum;
  ReductionPlan plan;
  DType dtype = DType::float32;  // of the result
};

// The last item of the group is the reduction, the one before it the chain's value.
void run_reduction(const Schedule& schedule, const Group& group);

Tensor launch_reduction(const Queue& queue, const ReducedChain& chain);
Tensor reduce_on_host(const Queue& queue, const ReducedChain& chain);

// The two kernels of a reduced chain, "fused_reduce" and "fused_parts".
struct ReductionShape {
  int vec = 1;
  bool rows = true;     // inner is 1: vectors lie along the row, else along the columns
  bool chunked = true;  // an item owns neighbours (CPU); else neighbours belong to neighbour items
};
std::string reduction_source(const ReducedChain& chain, ElementProgram described,
                             const ReductionShape& shape);

}  // namespace netcl::fusion
