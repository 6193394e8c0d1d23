// Which local sizes are possible for a launch, which are worth measuring, and which one is taken
// when nothing was measured.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernel/program_cache.h"

namespace netcl::tune {

inline constexpr std::size_t kLargestCandidate = 1024;  // no device gains from more

struct SizeLimits {
  std::size_t total = 1;  // items of a work-group
  std::array<std::size_t, 3> each{1, 1, 1};
  bool rounds_up = false;         // else only sizes that divide the global size are possible
  bool is_fixed = false;          // the kernel has a reqd_work_group_size
  bool driver_may_choose = true;  // not where the size is required or bounded by the spec
};

// Of the device, the kernel and its spec.
SizeLimits size_limits(const detail::KernelState& kernel, const LaunchPolicy& policy);

// Whether `local` can be launched. An empty one is the driver's choice.
bool allows(const SizeLimits& limits, const WorkSize& global, const WorkSize& local);

// The spec's size, else the one that the kernel requires, else 64 within the limits, else the
// driver's choice.
WorkSize untuned_local_size(const detail::KernelState& kernel, const LaunchPolicy& policy,
                            const WorkSize& global);

// What to measure, the most promising first: `untuned`, the driver's choice, then powers of two
// and their products.
std::vector<WorkSize> default_candidates(const SizeLimits& limits, const WorkSize& global,
                                         const WorkSize& untuned);

// The global size with each dimension a multiple of the local one.
WorkSize rounded_up(const WorkSize& global, const WorkSize& local);

}  // namespace netcl::tune
