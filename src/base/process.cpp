// Process life: pthread_atfork marks children, atexit ends the time in which drivers may be called.
#include "base/process.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/check.h"

namespace netcl::process {
namespace {

// All trivially destructible: they are read while static objects are being destroyed.
enum State : int { kFresh, kUsed, kForked, kShutDown };
std::atomic<int> g_state{kFresh};
std::array<std::atomic<void (*)()>, 8> g_hooks{};
std::atomic<bool> g_hooks_done{false};

void in_child() {
  // A child of a process that never touched a driver may start its own life with one.
  if (g_state.load() == kUsed) g_state.store(kForked);
}

void at_exit_handler() { shutdown(); }

}  // namespace

void mark_driver_used() {
  int expected = kFresh;
  if (g_state.compare_exchange_strong(expected, kUsed)) pthread_atfork(nullptr, nullptr, in_child);
  // Registered every time: handlers run in reverse order, so the newest one runs before the exit
  // handlers of drivers that were loaded before this call. glibc's list grows; drivers are few.
  std::atexit(at_exit_handler);
}

bool calls_allowed() noexcept { return g_state.load(std::memory_order_relaxed) <= kUsed; }

void require(const char* where) {
  const int state = g_state.load(std::memory_order_relaxed);
  if (state <= kUsed) [[likely]]
    return;
  if (state == kForked)
    fail<ForkError>(
        "[{}] netcl cannot be used in a forked child of a process that used OpenCL: start workers "
        "with spawn or exec, or fork before the first netcl call",
        where);
  fail("[{}] netcl must not be used after the process began to exit", where);
}

void at_exit(void (*hook)()) {
  static std::once_flag registered;  // hooks also run where no driver was ever loaded
  std::call_once(registered, [] { std::atexit(at_exit_handler); });
  for (auto& slot : g_hooks) {
    void (*empty)() = nullptr;
    if (slot.load() == hook || slot.compare_exchange_strong(empty, hook)) return;
  }
  fail("[process] at most {} exit hooks are kept", g_hooks.size());
}

void shutdown() noexcept {
  if (g_state.load() == kForked || g_hooks_done.exchange(true)) return;
  for (auto& slot : g_hooks)
    if (auto* hook = slot.load()) hook();
  int used = kUsed;  // the CPU backend alone needs no protection from itself
  g_state.compare_exchange_strong(used, kShutDown);
}

}  // namespace netcl::process
