// Who wants to know which kernels a thread launches. Without one this costs the test of a
// thread-local pointer per launch.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "kernel/program_cache.h"

namespace netcl {

class LaunchListener {
 public:
  virtual ~LaunchListener() = default;
  // After the launch; the arguments are the caller's and end with the call.
  virtual void launched(const detail::KernelState& kernel, const WorkSize& global,
                        const WorkSize& local, std::span<const KernelArg> args) = 0;
};

// A share of a kernel that was launched: the cache still has its program.
std::shared_ptr<detail::KernelState> shared_kernel(const Context& context,
                                                   const detail::KernelState& kernel);

inline constinit thread_local LaunchListener* t_launch_listener = nullptr;

// Launches of this thread are told to `listener` until the end of the scope.
class ListeningScope {
 public:
  explicit ListeningScope(LaunchListener* listener)
      : before_(std::exchange(t_launch_listener, listener)) {}
  ~ListeningScope() { t_launch_listener = before_; }
  ListeningScope(const ListeningScope&) = delete;
  ListeningScope& operator=(const ListeningScope&) = delete;

 private:
  LaunchListener* before_;
};

}  // namespace netcl
