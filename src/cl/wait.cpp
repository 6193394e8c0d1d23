// Polling waits. The pause between two polls grows with the time already waited, so that a wait
// ends at most about 6 % late and costs next to no processor time (the device may be the
// processor).
#include "cl/wait.h"

#include <unistd.h>
#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <thread>

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

void poll_until_complete(const Event& event, double seconds) {
  const PreciseSleeps precise;
  const auto start = Clock::now();
  while (event_progress(event.get()) != Progress::complete) {
    interrupt::poll();
    const std::chrono::duration<double> waited = Clock::now() - start;
    check<TimeoutError>(seconds <= 0 || waited.count() < seconds,
                        "[wait] the device must finish within {} s: still busy", seconds);
    const auto pause = std::clamp(waited.count() / 16, 20e-6, 10e-3);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
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
      poll_until_complete(event, seconds);
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
    poll_until_complete(event, seconds);
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
