// Where the time goes: timed events, regions of the host, a summary per kernel and a trace file
// that opens in Perfetto or chrome://tracing. NETCL_PROFILE=trace.json does all of it for any
// program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/opencl.h"

namespace netcl {

struct ProfileRecord {
  std::string name;
  double duration_ms = 0;
};

// Times single events of a queue that was made with profiling (NETCL_PROFILE_EVENTS=1).
class EventTimer {
 public:
  explicit EventTimer(const Queue& queue);  // DeviceError for a queue without profiling
  ProfileRecord time_event(const Event& event, std::string_view name = "") const;  // waits for it
};

// What a kernel is known to do, for GFLOP/s and GB/s.
struct KernelCost {
  double flops = 0;
  double bytes = 0;  // 0: the size of all memory arguments is taken
};

// Sets the cost of the launches of this thread until the end of the scope.
class CostScope {
 public:
  explicit CostScope(KernelCost cost);
  ~CostScope();
  CostScope(const CostScope&) = delete;
  CostScope& operator=(const CostScope&) = delete;

 private:
  KernelCost before_;
};

// Times a part of the host's program. With a queue it ends when the queue's work is done.
class TimingRegion {
 public:
  explicit TimingRegion(std::string name, Queue queue = {});
  ~TimingRegion();
  TimingRegion(const TimingRegion&) = delete;
  TimingRegion& operator=(const TimingRegion&) = delete;

 private:
  std::string name_;
  Queue queue_;
  std::uint64_t start_ns_;
};

struct KernelSummary {
  std::string name;
  std::string device;
  std::uint64_t count = 0;
  double total_ms = 0, mean_us = 0, min_us = 0, max_us = 0;
  double gflops = 0;        // 0 when the cost is not known
  double gbytes_per_s = 0;  // of the bytes that the arguments hold, unless a cost says more
};

struct RegionSummary {
  std::string name;
  std::uint64_t count = 0;
  double total_ms = 0;
};

// Recording is off until start_profiling() or NETCL_PROFILE. Kernels are timed on queues with
// profiling; on others they are counted with the time from enqueue to completion left at 0.
void start_profiling();
void stop_profiling();
bool is_profiling();
void clear_profile();

// Most expensive first. They wait for the recorded work to finish.
std::vector<KernelSummary> kernel_summary();
std::vector<RegionSummary> region_summary();
std::string profile_report();                      // both as a table for a terminal
void write_chrome_trace(const std::string& path);  // atomically; FileError when it cannot

}  // namespace netcl
