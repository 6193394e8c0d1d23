// Where launches and builds ask whether they are made, and tell that they were.
#pragma once

#include <atomic>

#include "cl/recording.h"
#include "kernel/program_cache.h"
#include "netcl/compile_ahead.h"

namespace netcl::compiling {

inline constinit std::atomic<WithheldLaunches::Impl*> g_withheld{nullptr};
inline bool withholds() { return g_withheld.load(std::memory_order_relaxed) != nullptr; }

void withhold(const detail::KernelState& kernel, cl::LaunchRecord launch);

// Whether another process compiles, too. This one then waits after the first launch of a kernel,
// in which the driver compiles it, and does not read the source of the next one meanwhile: the
// other process is at that.
inline constinit std::atomic<bool> g_in_turns{false};
inline bool in_turns() { return g_in_turns.load(std::memory_order_relaxed); }

// A program was built from source, which took so long.
void compiled(const Device& device, double seconds);

}  // namespace netcl::compiling
