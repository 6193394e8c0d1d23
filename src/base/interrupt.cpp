// The handler of SIGINT and SIGTERM sets a flag and wakes a watchdog thread. Whoever polls takes
// the flag and throws; if nobody does within the grace time (a stuck driver call), the watchdog
// ends the process.
#include "base/interrupt.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace netcl::interrupt {
namespace {

std::atomic<bool> g_installed{false}, g_pending{false}, g_happened{false}, g_has_hook{false};
std::atomic<int> g_held{0}, g_signal{SIGINT};
std::atomic<unsigned> g_releases{0};
sem_t g_signalled;     // posted by the handler: async-signal-safe
sem_t g_acknowledged;  // posted by poll()
std::mutex g_mutex;    // guards installation and the hook
struct sigaction g_previous, g_previous_term;
bool g_has_int = false, g_has_term = false;

std::shared_ptr<std::function<void()>>& hook_slot() {
  static auto* slot = new std::shared_ptr<std::function<void()>>();
  return *slot;
}

[[noreturn]] void hard_exit(const char* text, std::size_t size) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size);
  ::_exit(exit_code());
}

void handler(int signal) {
  const int saved = errno;
  g_signal.store(signal);
  if (g_pending.exchange(true)) {
    static constexpr char kText[] = "netcl: interrupted twice, exiting\n";
    hard_exit(kText, sizeof kText - 1);
  }
  sem_post(&g_signalled);
  errno = saved;
}

void wait_for(sem_t& semaphore) {
  while (sem_wait(&semaphore) != 0 && errno == EINTR) {
  }
}

bool wait_for(sem_t& semaphore, double seconds) {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);  // the time of day may jump
  const auto nanoseconds = until.tv_nsec + static_cast<long>(seconds * 1e9);
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  while (sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until) != 0)
    if (errno != EINTR) return false;
  return true;
}

void watchdog() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    wait_for(g_signalled);
    for (;;) {
      const auto releases = g_releases.load();
      if (wait_for(g_acknowledged, kGraceSeconds) || !g_pending.load()) break;
      if (g_held.load() > 0 || g_releases.load() != releases) continue;
      static constexpr char kText[] =
          "netcl: interrupted, the device did not stop in 3 s, exiting\n";
      hard_exit(kText, sizeof kText - 1);
    }
  }
}

auto current_handler(int signal) {
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  return current.sa_handler;
}

}  // namespace

int exit_code() noexcept { return 128 + g_signal.load(); }

bool install_handler(bool also_sigterm) {
  const std::lock_guard lock(g_mutex);
  if (g_installed.load()) return true;
  // A shell without job control starts background jobs with SIGINT ignored; it stays so.
  const auto before = current_handler(SIGINT);
  g_has_int = before == SIG_DFL;
  g_has_term =
      also_sigterm && (g_has_int || before == SIG_IGN) && current_handler(SIGTERM) == SIG_DFL;
  if (!g_has_int && !g_has_term) return false;
  static const bool started = [] {
    sem_init(&g_signalled, 0, 0);
    sem_init(&g_acknowledged, 0, 0);
    std::thread(watchdog).detach();
    return true;
  }();
  (void)started;
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  if (g_has_int) sigaction(SIGINT, &action, &g_previous);
  if (g_has_term) sigaction(SIGTERM, &action, &g_previous_term);
  g_installed.store(true);
  return true;
}

void remove_handler() {
  const std::lock_guard lock(g_mutex);
  if (!g_installed.exchange(false)) return;
  if (g_has_int) sigaction(SIGINT, &g_previous, nullptr);
  if (g_has_term) sigaction(SIGTERM, &g_previous_term, nullptr);
  if (g_pending.exchange(false)) sem_post(&g_acknowledged);
}

void set_poll_hook(std::function<void()> hook) {
  const std::lock_guard lock(g_mutex);
  g_has_hook.store(static_cast<bool>(hook));
  hook_slot() = std::make_shared<std::function<void()>>(std::move(hook));
}

bool enabled() noexcept { return g_installed.load() || g_has_hook.load(); }

bool happened() noexcept { return g_happened.load(); }

Hold::Hold() noexcept { ++g_held; }

Hold::~Hold() {
  ++g_releases;
  --g_held;
}

void poll() {
  if (g_held.load(std::memory_order_relaxed) > 0) return;
  if (g_pending.load(std::memory_order_relaxed) && g_pending.exchange(false)) {
    g_happened.store(true);
    sem_post(&g_acknowledged);
    throw Interrupted("[interrupt] Ctrl+C arrived while netcl was working");
  }
  if (!g_has_hook.load(std::memory_order_relaxed)) return;
  std::shared_ptr<std::function<void()>> hook;
  {
    const std::lock_guard lock(g_mutex);
    hook = hook_slot();
  }
  if (hook && *hook) (*hook)();
}

}  // namespace netcl::interrupt
