// Times come from event timers of a queue of our own (the caller's may have none), and every timed
// run starts from restored memory: a kernel that appends through a counter must not run twice.
#include "tune/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cl/recording.h"
#include "cl/state.h"
#include "kernel/launch.h"
#include "tune/candidates.h"

namespace netcl::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 3, kQuickRuns = 5;
constexpr double kQuickMicroseconds = 500;
constexpr double kBriefMicroseconds = 20e3, kBriefRuns = 100;
constexpr double kHopeless = 1.5;  // a run this much slower than the best median ends a candidate

std::atomic<std::uint64_t> g_runs{0};

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct TimerQueue {
  Queue queue;
};

// A queue with event timers beside the given one; that one itself where it has them, or where the
// driver has none to offer.
Queue timer_queue(const Queue& queue) {
  if (queue.has_profiling()) return queue;
  const auto made = queue.state().attachments.get<TimerQueue>([&] {
    try {
      return new TimerQueue{Queue::create(queue.context(), queue.device(), true)};
    } catch (const DeviceError& error) {
      log::debug(2, "tuning without event timers: {}", error.what());
      return new TimerQueue{};
    }
  });
  return made->queue ? made->queue : queue;
}

class Search {
 public:
  Search(const MeasureRequest& request, const Queue& queue, const ScratchArgs& scratch)
      : request_(request), queue_(queue), scratch_(scratch) {}

  AutotuneCandidate measure(const WorkSize& local) {
    AutotuneCandidate candidate{local, 0, ""};
    if (is_over()) {
      candidate.note = "not measured: the time was up";
      return candidate;
    }
    try {
      const auto warmed_up = warm_up(local);
      if (warmed_up.is_right)
        candidate.runtime_us = time(local, warmed_up.microseconds);
      else
        candidate.note = "wrong result";
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      if (!first_error_) first_error_ = std::current_exception();
      candidate.note = error.what();
    }
    if (candidate.runtime_us > 0 && (best_us_ == 0 || candidate.runtime_us < best_us_))
      best_us_ = candidate.runtime_us;
    if (allowed_us_ == 0 && candidate.runtime_us > 0)
      allowed_us_ = std::max(kBriefMicroseconds, kBriefRuns * candidate.runtime_us);
    return candidate;
  }

  std::exception_ptr first_error() const { return first_error_; }

 private:
  // Counted from the end of the first candidate's warm-up, in which a driver may compile: that is
  // the price of the launch itself, not of the search.
  bool is_over() const {
    return request_.is_brief && allowed_us_ > 0 && microseconds_since(start_) > allowed_us_;
  }

  Event launch(const WorkSize& local) {
    const auto global =
        request_.policy.guards_range ? rounded_up(request_.global, local) : request_.global;
    return enqueue_kernel(queue_, request_.kernel, global, local, scratch_.args());
  }

  struct WarmUp {
    bool is_right;        // the outputs are those of the first candidate
    double microseconds;  // too long rather than too short; 0 without timers
  };

  WarmUp warm_up(const WorkSize& local) {
    scratch_.restore();
    const auto event = launch(local);
    // Reading waits too, but cannot be interrupted.
    if (interrupt::enabled() || !scratch_.has_outputs()) event.wait();
    auto outputs = scratch_.read();
    const double time = queue_.has_profiling() ? timer(event, 0) : 0;
    if (has_reference_) return {scratch_.same(reference_, outputs), time};
    reference_ = std::move(outputs);
    has_reference_ = true;
    start_ = Clock::now();
    return {true, time};
  }

  double run(const WorkSize& local) {
    scratch_.restore();
    queue_.finish();  // so that the wall clock does not see the copies
    const auto start = Clock::now();
    const auto event = launch(local);
    event.wait();
    const double wall = microseconds_since(start);
    return queue_.has_profiling() ? timer(event, wall) : wall;
  }

  static double timer(const Event& event, double otherwise) {
    const auto times = cl::event_times(event.get());
    return times.ended > times.started ? static_cast<double>(times.ended - times.started) / 1e3
                                       : otherwise;
  }

  double time(const WorkSize& local, double warm_up_us) {
    if (warm_up_us > 0 && warm_up_us < kQuickMicroseconds) return quick_median(local, warm_up_us);
    std::vector<double> times{run(local)};
    while (times.size() < kRuns && (best_us_ == 0 || times.back() < kHopeless * best_us_))
      times.push_back(run(local));
    return median(std::move(times));
  }

  // Several runs and one wait: waiting takes longer than a kernel of microseconds.
  double quick_median(const WorkSize& local, double otherwise) {
    std::vector<Event> events;
    for (int i = 0; i < kQuickRuns; ++i) {
      scratch_.restore();
      events.push_back(launch(local));
    }
    events.back().wait();
    std::vector<double> times;
    for (const auto& event : events) times.push_back(timer(event, otherwise));
    return median(std::move(times));
  }

  const MeasureRequest& request_;
  const Queue& queue_;
  const ScratchArgs& scratch_;
  Outputs reference_;
  bool has_reference_ = false;
  double best_us_ = 0, allowed_us_ = 0;
  Clock::time_point start_;
  std::exception_ptr first_error_;
};

ScratchArgs make_scratch(const Queue& queue, const MeasureRequest& request) {
  if (request.args.empty()) return ScratchArgs(queue, request.kernel, request.global);
  return ScratchArgs(queue, request.kernel, request.args);
}

std::vector<WorkSize> candidates_of(const MeasureRequest& request, const WorkSize& untuned,
                                    std::size_t max_items) {
  if (!request.candidates.empty()) return request.candidates;
  auto limits = size_limits(request.kernel, request.policy);
  if (max_items < limits.total) {
    limits.total = max_items;
    limits.driver_may_choose = false;
  }
  return default_candidates(limits, request.global, untuned);
}

void choose_best(AutotuneResult& result) {
  for (const auto& candidate : result.candidates) {
    if (!candidate.note.empty()) continue;
    if (result.runtime_us != 0 && candidate.runtime_us >= result.runtime_us) continue;
    result.best_local_size = candidate.local_size;
    result.runtime_us = candidate.runtime_us;
  }
}

double default_time(Search& search, const AutotuneResult& result, const WorkSize& untuned) {
  for (const auto& candidate : result.candidates)
    if (candidate.local_size == untuned) return candidate.runtime_us;
  return search.measure(untuned).runtime_us;
}

AutotuneResult run_search(const MeasureRequest& request, const Queue& queue,
                          const ScratchArgs& scratch) {
  const auto untuned = untuned_local_size(request.kernel, request.policy, request.global)
                           .padded(request.global.rank());
  Search search(request, queue, scratch);
  AutotuneResult result;
  for (const auto& local : candidates_of(request, untuned, scratch.max_items())) {
    interrupt::poll();
    result.candidates.push_back(search.measure(local.padded(request.global.rank())));
  }
  choose_best(result);
  if (result.runtime_us == 0) std::rethrow_exception(search.first_error());
  result.default_us = default_time(search, result, untuned);
  return result;
}

}  // namespace

AutotuneResult measure(const MeasureRequest& request) {
  check<ShapeError>(request.global.total() > 0 && !request.global.empty(),
                    "[tune {}] the global size must not be empty: {}", request.kernel.name,
                    request.global.to_string());
  const cl::RecordingScope unrecorded(nullptr);
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  ++g_runs;
  const auto start = Clock::now();
  const auto queue = timer_queue(request.queue);
  request.queue.finish();
  AutotuneResult result;
  {
    const auto scratch = make_scratch(queue, request);
    result = run_search(request, queue, scratch);
  }
  // Nobody else allocates from the pool of our own queue.
  if (!(queue == request.queue)) get_persistent_pool(queue)->clear();
  log::debug(2, "tuned {} {} in {:.1f} ms: local size {}, {:.1f} us instead of {:.1f}",
             request.kernel.name, request.global.to_string(), microseconds_since(start) / 1e3,
             result.best_local_size.to_string(), result.runtime_us, result.default_us);
  return result;
}

std::uint64_t tuning_runs() { return g_runs.load(); }

}  // namespace netcl::tune
