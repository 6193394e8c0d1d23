// Measuring the local sizes of one kernel for one problem.
#pragma once

#include <cstdint>
#include <vector>

#include "netcl/autotuner.h"
#include "tune/scratch.h"

namespace netcl::tune {

struct MeasureRequest {
  const Queue& queue;
  detail::KernelState& kernel;
  LaunchPolicy policy;
  WorkSize global;
  std::vector<WorkSize> candidates = {};  // default_candidates() when empty
  std::span<const KernelArg> args = {};   // invented when empty
  // A search in the middle of a launch: ends after 20 ms, or after the time of 100 runs of the
  // untuned size where that is longer.
  bool is_brief = false;
};

// The fastest candidate whose outputs equal those of the first one. Throws what the first candidate
// threw when none could be launched. One search at a time in the process: two would disturb each
// other's times.
AutotuneResult measure(const MeasureRequest& request);

// How many searches this process has made.
std::uint64_t tuning_runs();

}  // namespace netcl::tune
