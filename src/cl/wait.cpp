// Waits that can be interrupted. After a few looks the driver calls back when the command has
// ended, and the waiting thread wakes now and then to look for an interrupt. It must not wake more
// often: the device may be the processor, and every wake takes a core from a kernel.
#include "cl/wait.h"

#include <unistd.h>
#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/in_flight.h"
#include "cl/state.h"
#include "netcl/runtime.h"

namespace netcl {
namespace cl {
namespace {

using Clock = std::chrono::steady_clock;

// Linux lets sleeps end up to 50 us late, to wake fewer times: longer than many a kernel runs.
class PreciseSleeps {
 public:
#if defined(PR_SET_TIMERSLACK)
  PreciseSleeps() : slack_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) { set(1000); }
  ~PreciseSleeps() { set(slack_); }

 private:
  static void set(long nanoseconds) {
    if (nanoseconds > 0) prctl(PR_SET_TIMERSLACK, nanoseconds, 0, 0, 0);
  }
  long slack_;
#else
  PreciseSleeps() {}
#endif
  PreciseSleeps(const PreciseSleeps&) = delete;
  PreciseSleeps& operator=(const PreciseSleeps&) = delete;
};

constexpr double kLongestPause = 10e-3;
constexpr double kInstant = 20e-6;    // ends sooner than the shortest sleep
constexpr double kShortWait = 60e-6;  // ends sooner than two threads have woken each other

// What the driver's thread tells the waiting one. Both own it: a wait may be given up.
class End {
 public:
  void tell() {
    const std::lock_guard lock(mutex_);
    told_ = true;
    changed_.notify_one();
  }
  void wait(double seconds) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return told_; });
    told_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;
};

// Looks again at growing distances. Ends at most 6 % late.
void sleep_a_part_of(double waited) {
  const PreciseSleeps precise;
  std::this_thread::sleep_for(
      std::chrono::duration<double>(std::clamp(waited / 16, 20e-6, kLongestPause)));
}

void wait_until_complete(const Event& event, double seconds) {
  const auto start = Clock::now();
  std::shared_ptr<End> end;
  bool calls_back = true;
  while (event_progress(event.get()) != Progress::complete) {
    interrupt::poll();
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    check<TimeoutError>(seconds <= 0 || waited < seconds,
                        "[wait] the device must finish within {} s: still busy", seconds);
    if (waited >= kShortWait && calls_back && !end) {
      end = std::make_shared<End>();
      calls_back = call_at_end(event.get(), [end] { end->tell(); });
    }
    if (end && calls_back)
      end->wait(seconds > 0 ? std::min(seconds - waited, kLongestPause) : kLongestPause);
    else if (waited < kInstant)
      std::this_thread::yield();
    else
      sleep_a_part_of(waited);
  }
  interrupt::poll();
}

// Runs a waiting call and adds to its error which commands it may have come from.
template <class F>
void with_origin(const QueueState* state, F&& f) {
  try {
    f();
  } catch (const DeviceError& error) {
    const auto recent = state == nullptr ? std::string() : state->recent.to_string();
    if (recent.empty()) throw;
    throw DeviceError(fmt::format("{}; the last commands were: {}", error.what(), recent),
                      error.call(), error.code(), error.name());
  }
}

}  // namespace

void wait(const Event& event, double seconds, const QueueState* state) {
  if (!event) return;
  with_origin(state, [&] {
    if (seconds <= 0 && !interrupt::enabled())
      wait_blocking(event.get());
    else
      wait_until_complete(event, seconds);
  });
}

void wait_for_queue(const Queue& queue, double seconds) {
  process::require("finish");
  if (queue.is_cpu()) return;
  with_origin(&queue.state(), [&] {
    if (seconds <= 0 && !interrupt::enabled()) {
      finish(queue.get());
      return;
    }
    const auto event = marker(queue.get());
    flush(queue.get());
    wait_until_complete(event, seconds);
  });
  free_ended();
}

}  // namespace cl

void interruptible_finish(const Queue& queue, double timeout) {
  check<ArgumentError>(timeout >= 0, "[interruptible_finish] the timeout must not be negative: {}",
                       timeout);
  cl::wait_for_queue(queue, timeout);
}

bool install_sigint_handler(bool also_sigterm) { return interrupt::install_handler(also_sigterm); }
int interrupt_exit_code() { return interrupt::exit_code(); }
void remove_sigint_handler() { interrupt::remove_handler(); }
void set_interrupt_hook(std::function<void()> hook) { interrupt::set_poll_hook(std::move(hook)); }
void check_interrupt() { interrupt::poll(); }

}  // namespace netcl
