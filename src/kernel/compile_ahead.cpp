#include "kernel/compile_ahead.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "device/driver_limits.h"
#include "netcl/capabilities.h"

namespace netcl {
namespace {

// Seconds. What PoCL has in its cache is there sooner, what it has not takes several times as long.
constexpr double kNotFromACache = 0.1;

struct Withheld {
  const detail::KernelState* kernel;  // the cache keeps it
  cl::LaunchRecord launch;

  auto compiled_as() const { return std::tie(kernel, launch.has_local, launch.local); }
};

struct FirstCompilation {
  std::mutex mutex;
  std::function<bool()> call;

  std::function<bool()> exchange(std::function<bool()> next) {
    const std::lock_guard lock(mutex);
    return std::exchange(call, std::move(next));
  }
};

FirstCompilation& first_compilation() {
  static FirstCompilation one;
  return one;
}

}  // namespace

struct WithheldLaunches::Impl {
  std::mutex mutex;
  std::vector<Withheld> launches;

  void add(Withheld one) {
    const std::lock_guard lock(mutex);
    const bool known = std::any_of(launches.begin(), launches.end(), [&](const Withheld& other) {
      return other.compiled_as() == one.compiled_as();
    });
    if (!known) launches.push_back(std::move(one));
  }
};

namespace compiling {

void withhold(const detail::KernelState& kernel, cl::LaunchRecord launch) {
  if (auto* const all = g_withheld.load()) all->add({&kernel, std::move(launch)});
}

void compiled(const Device& device, double seconds) {
  if (seconds < kNotFromACache || !detail::keeps_programs_itself(device_profile(device))) return;
  const auto call = first_compilation().exchange(nullptr);
  if (call) g_in_turns = call();
}

}  // namespace compiling

CompileRole compile_role() {
  if (env::text("NETCL_COMPILE_AHEAD") == "worker") return CompileRole::second;
  return env::flag("NETCL_COMPILE_AHEAD") ? CompileRole::first : CompileRole::alone;
}

void on_first_compilation(std::function<bool()> call) {
  first_compilation().exchange(std::move(call));
}

WithheldLaunches::WithheldLaunches() : impl_(std::make_unique<Impl>()) {
  Impl* none = nullptr;
  check<Error>(compiling::g_withheld.compare_exchange_strong(none, impl_.get()),
               "[WithheldLaunches] there must be one at a time: another one lives");
}

WithheldLaunches::~WithheldLaunches() { compiling::g_withheld = nullptr; }

std::size_t WithheldLaunches::launch() {
  std::vector<Withheld> launches;
  {
    const std::lock_guard lock(impl_->mutex);
    launches.swap(impl_->launches);
  }
  std::size_t made = 0;
  for (auto one = launches.rbegin(); one != launches.rend(); ++one) {
    const auto& launch = one->launch;
    try {
      cl::enqueue(launch.queue.get(), launch.kernel.get(), launch.dimensions, launch.global.data(),
                  launch.has_local ? launch.local.data() : nullptr);
      launch.queue.finish();
      ++made;
    } catch (const DeviceError& error) {
      log::debug(2, "a withheld launch failed: {}", error.what());
    }
  }
  return made;
}

}  // namespace netcl
