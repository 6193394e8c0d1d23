// Launches are kept as events until they have completed; then only their times remain, so that a
// long run holds on to no OpenCL object.
#include "profiling/recorder.h"

#include <chrono>
#include <unordered_map>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/state.h"

namespace netcl::profiling {

std::atomic<bool> g_enabled{false};

namespace {

struct Launch {
  Span span;
  Event event;
  bool profiled;
  std::uint64_t enqueued_ns;
};

// The difference between the host's clock and a device's, from the first launch seen on a queue.
using ClockOffsets = std::unordered_map<const char*, std::int64_t>;

struct Recorder {
  std::mutex mutex;
  std::deque<Launch> pending;
  std::vector<Span> done;
  ClockOffsets offsets;
};

Recorder& recorder() {
  static auto* instance = new Recorder();
  return *instance;
}

constexpr std::size_t kMostPending = 4096;
thread_local KernelCost t_cost;

void settle(Recorder& all, Launch& launch) {
  if (launch.profiled) {
    const auto times = cl::event_times(launch.event.get());
    const auto offset = static_cast<std::int64_t>(launch.enqueued_ns - times.queued);
    const auto known = all.offsets.emplace(launch.span.track, offset).first->second;
    launch.span.start_ns = times.started + static_cast<std::uint64_t>(known);
    launch.span.duration_ns = times.ended - times.started;
  } else {
    launch.span.start_ns = launch.enqueued_ns;
    launch.span.timed = false;
  }
  all.done.push_back(launch.span);
}

// Takes completed launches out of the queue; with `wait` all of them.
void drain(Recorder& all, bool wait) {
  while (!all.pending.empty()) {
    auto& launch = all.pending.front();
    try {
      if (wait) launch.event.wait();
      if (!launch.event.is_complete()) return;
      settle(all, launch);
    } catch (const DeviceError& error) {
      log::debug(1, "a profiled launch of {} failed: {}", launch.span.name, error.what());
    }
    all.pending.pop_front();
  }
}

const char* thread_track() {
  static std::atomic<int> next{1};
  static thread_local const char* name =
      intern(fmt::format("host thread {}", next.fetch_add(1, std::memory_order_relaxed)));
  return name;
}

void write_at_exit() {
  if (!enabled()) return;
  try {
    finish_all_queues();
    log::write("\n" + profile_report());
    write_chrome_trace(env::text("NETCL_PROFILE"));
  } catch (const std::exception& error) {
    log::warn(error.what());
  }
}

}  // namespace

std::uint64_t host_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

void record_launch(const Queue& queue, const char* name, const Event& event,
                   double argument_bytes) {
  auto cost = t_cost;
  if (cost.bytes == 0) cost.bytes = argument_bytes;
  Launch launch{{name, "kernel", intern(queue.name()), 0, 0, true, cost},
                event,
                queue.has_profiling(),
                host_ns()};
  auto& all = recorder();
  const std::lock_guard lock(all.mutex);
  all.pending.push_back(std::move(launch));
  if (all.pending.size() > kMostPending) drain(all, false);
}

KernelCost current_cost() { return t_cost; }

void record_region(std::string_view name, std::uint64_t start_ns, std::uint64_t end_ns) {
  auto& all = recorder();
  const std::lock_guard lock(all.mutex);
  all.done.push_back(
      {intern(name), "region", thread_track(), start_ns, end_ns - start_ns, true, {}});
}

std::vector<Span> spans() {
  auto& all = recorder();
  const std::lock_guard lock(all.mutex);
  drain(all, true);
  return all.done;
}

void start_from_environment() {
  static const bool wanted = [] {
    if (env::text("NETCL_PROFILE").empty()) return false;
    process::at_exit(write_at_exit);
    g_enabled.store(true);
    return true;
  }();
  (void)wanted;
}

}  // namespace netcl::profiling

namespace netcl {

using profiling::g_enabled;

void start_profiling() { g_enabled.store(true); }
void stop_profiling() { g_enabled.store(false); }
bool is_profiling() { return g_enabled.load(); }

void clear_profile() {
  auto& all = profiling::recorder();
  const std::lock_guard lock(all.mutex);
  all.pending.clear();
  all.done.clear();
}

CostScope::CostScope(KernelCost cost) : before_(profiling::t_cost) { profiling::t_cost = cost; }
CostScope::~CostScope() { profiling::t_cost = before_; }

TimingRegion::TimingRegion(std::string name, Queue queue)
    : name_(std::move(name)), queue_(std::move(queue)), start_ns_(profiling::host_ns()) {
  profiling::start_from_environment();
}

TimingRegion::~TimingRegion() {
  try {
    if (queue_ && process::calls_allowed()) queue_.finish();
    if (profiling::enabled()) profiling::record_region(name_, start_ns_, profiling::host_ns());
  } catch (const std::exception& error) {
    log::warn(error.what());
  }
}

EventTimer::EventTimer(const Queue& queue) {
  check<DeviceError>(queue.has_profiling(),
                     "[EventTimer] the queue must have profiling (NETCL_PROFILE_EVENTS=1): {}",
                     queue.name());
}

ProfileRecord EventTimer::time_event(const Event& event, std::string_view name) const {
  check<ArgumentError>(static_cast<bool>(event), "[EventTimer] the event must not be empty");
  event.wait();
  return {std::string(name), static_cast<double>(event.end_ns() - event.start_ns()) / 1e6};
}

}  // namespace netcl
