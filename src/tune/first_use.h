// Parameters of the library's own kernels at their first use: stored ones that make sense here, or,
// with NETCL_AUTOTUNE=1, measured now.
#pragma once

#include "netcl/tunables.h"

namespace netcl::tune {

// Whether a stored record fits a search space: a file may hold anything.
bool is_usable(const std::vector<Tunable>& tunables,
               const std::function<std::string(const Parameters&)>& declines,
               const TuningRecord& record);

// Whether this thread is measuring. Making scratch memory uses kernels that can be tuned
// themselves.
bool is_measuring();

// Measures the problem that `make` gives and keeps the result.
Parameters measure_now(const Queue& queue, const std::function<TunableProblem()>& make);

}  // namespace netcl::tune
