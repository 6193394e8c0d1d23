// The recorder behind netcl/profiling.h: launches and regions, in the order in which they came.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "netcl/profiling.h"

namespace netcl::profiling {

// One thing that took time, on the host's steady clock.
struct Span {
  const char* name;      // interned
  const char* category;  // "kernel" or "region"
  const char* track;     // the device or the host thread it ran on, interned
  std::uint64_t start_ns = 0, duration_ns = 0;
  bool timed = true;  // false: the queue has no profiling, only the count is known
  KernelCost cost;
};

extern std::atomic<bool> g_enabled;
inline bool enabled() { return g_enabled.load(std::memory_order_relaxed); }

std::uint64_t host_ns();

// Called by every launch while enabled.
void record_launch(const Queue& queue, const char* name, const Event& event, double argument_bytes);
// The cost that the launches of this thread have at the moment.
KernelCost current_cost();
void record_region(std::string_view name, std::uint64_t start_ns, std::uint64_t end_ns);

// Everything recorded so far, finished.
std::vector<Span> spans();

// NETCL_PROFILE: switches recording on and has the trace written at exit. Called before the first
// launch and by regions, so that a program needs no line of code for it.
void start_from_environment();

}  // namespace netcl::profiling
