// Log lines are written with one call each, so that lines of several threads do not mix.
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

#include "base/env.h"

namespace netcl::log {
namespace {

std::atomic<int> g_level{-1};

}  // namespace

int level() {
  int current = g_level.load(std::memory_order_relaxed);
  if (current < 0) {
    // Set first: env::integer itself may warn, and a warning asks for nothing here.
    g_level.store(0, std::memory_order_relaxed);
    current = static_cast<int>(env::integer("NETCL_DEBUG"));
    g_level.store(current, std::memory_order_relaxed);
  }
  return current;
}

void set_level(int level) { g_level.store(level, std::memory_order_relaxed); }

void write(std::string_view message) noexcept {
  try {
    const auto line = fmt::format("netcl: {}\n", message);
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
  }
}

void warn(std::string_view message) noexcept {
  try {
    write(fmt::format("warning: {}", message));
  } catch (...) {
  }
}

void warn_once(std::string_view message) noexcept {
  try {
    static std::mutex mutex;
    // Leaked: a warning may come from a destructor that runs after those of static objects.
    static auto* seen = new std::set<std::string, std::less<>>();
    {
      const std::lock_guard lock(mutex);
      if (!seen->emplace(message).second) return;
    }
    warn(message);
  } catch (...) {
  }
}

}  // namespace netcl::log
