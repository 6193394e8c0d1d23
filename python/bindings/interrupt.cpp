// Ctrl+C. Python notes the signal and handles it between two byte codes of the main thread, which
// never come while that thread is inside netcl. So every wait of netcl asks Python in between
// (set_interrupt_hook), and a watcher ends the process where nothing waits: a driver's compiler, or
// one long call of the CPU backend, that has not come back 3 s after Ctrl+C, or at the second one.
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>

#include "common.h"
#include "netcl/runtime.h"

namespace netcl::python {
namespace {

std::atomic<unsigned long> main_thread{0};  // as Python numbers threads
// Counts the calls of the main thread into netcl: odd while inside.
std::atomic<std::uint64_t> calls{0};
bool is_main_thread() { return PyThread_get_thread_ident() == main_thread.load(); }
thread_local bool inside = false;

struct Watch {
  std::atomic<std::uint64_t> call{0};  // that Ctrl+C met
  sem_t signals;
  struct sigaction before {};
  double grace = 3;
  bool installed = false;
};
Watch& watch() {
  static auto* the_watch = new Watch;  // outlives the handler
  return *the_watch;
}

void end_process(const char* why) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, why, std::strlen(why));
  _exit(130);
}

extern "C" void on_sigint(int number, siginfo_t* info, void* context) {
  const int error = errno;
  auto& state = watch();
  const auto call = calls.load();
  if (call % 2 == 1) {
    if (state.call.exchange(call) == call) end_process("\nnetcl: interrupted twice, exit\n");
    sem_post(&state.signals);
  }
  // Python's own handler: it notes the signal.
  if (state.before.sa_flags & SA_SIGINFO)
    state.before.sa_sigaction(number, info, context);
  else if (state.before.sa_handler != SIG_DFL && state.before.sa_handler != SIG_IGN)
    state.before.sa_handler(number);
  errno = error;
}

void watch_signals() {
  auto& state = watch();
  for (;;) {
    if (sem_wait(&state.signals) != 0) continue;
    const auto call = state.call.load();
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(state.grace);
    while (calls.load() == call && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (calls.load() == call)
      end_process("\nnetcl: interrupted, and the device does not answer: exit\n");
  }
}

bool install_sigint_handler_once(double grace) {
  auto& state = watch();
  state.grace = grace;
  if (state.installed) return true;
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  const bool is_python =
      (now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  if (!is_python) return false;
  sem_init(&state.signals, 0, 0);
  state.before = now;
  struct sigaction ours {};
  ours.sa_sigaction = on_sigint;
  ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_RESTART | SA_ONSTACK));
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGINT, &ours, nullptr) != 0) return false;
  std::thread(watch_signals).detach();
  state.installed = true;
  return true;
}

// What Python's handler raised, until netcl has unwound. The main thread's alone.
std::unique_ptr<nb::python_error> raised;

// Called by waits, without the GIL. netcl knows what to do about Interrupted: it keeps what is
// done.
void ask_python() {
  if (!is_main_thread()) return;
  nb::gil_scoped_acquire lock;
  if (!lock.is_valid() || PyErr_CheckSignals() == 0) return;
  raised = std::make_unique<nb::python_error>();
  throw Interrupted("[wait] interrupted");
}

}  // namespace

void restore_interrupt(const Interrupted& error) {
  if (raised && is_main_thread()) {
    raised->restore();
    raised.reset();
  } else {
    PyErr_SetString(PyExc_KeyboardInterrupt, error.what());
  }
}

Unlocked::Unlocked() noexcept : outermost_(!inside && is_main_thread()) {
  if (outermost_) {
    inside = true;
    calls.fetch_add(1);
  }
  state_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  PyEval_RestoreThread(state_);
  if (outermost_) {
    calls.fetch_add(1);
    inside = false;
  }
}

void bind_interrupt(nb::module_& m) {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  set_interrupt_hook(ask_python);
  // The interpreter's end must not be met by a hook that needs it.
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function([] { set_interrupt_hook(nullptr); }));
  m.def("install_sigint_handler", &install_sigint_handler_once, "grace"_a = 3.0,
        "End the process with exit code 130 when Ctrl+C is not taken within `grace` seconds of a\n"
        "netcl call, or at the second one in the same call. Importing netcl does this where\n"
        "Python's own handler is in place. False: there is no handler of Python's to add to.");
  m.def(
      "interruptible_finish",
      [](const QueueArg& queue, double timeout) {
        const auto on = queue.get();
        Unlocked now;
        interruptible_finish(on, timeout);
      },
      "queue"_a, "timeout"_a = 30.0,
      "Wait until the queue is empty; netcl.errors.TimeoutError after `timeout` seconds (0: no\n"
      "limit). Ctrl+C ends the wait with KeyboardInterrupt.");
}

}  // namespace netcl::python
