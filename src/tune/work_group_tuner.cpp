// WorkGroupTuner: local sizes by rule, and the public face of measuring.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "netcl/autotuner.h"
#include "netcl/capabilities.h"
#include "tune/measure.h"

namespace netcl {

WorkGroupTuner::WorkGroupTuner(std::size_t max_local) : max_local_(max_local), is_bounded_(true) {
  check<ArgumentError>(max_local > 0, "[WorkGroupTuner] max_local must be at least 1: 0");
}

WorkGroupTuner::WorkGroupTuner(Kernel kernel, WorkSize global_size,
                               std::vector<WorkSize> candidates)
    : kernel_(std::move(kernel)), global_size_(global_size), candidates_(std::move(candidates)) {}

std::size_t WorkGroupTuner::choose_local_size(const Device& device) const {
  const auto limit = std::max<std::size_t>(device_profile(device).max_work_group_size, 1);
  return std::bit_floor(std::min(max_local_, limit));
}

std::pair<std::size_t, WorkSize> WorkGroupTuner::global_local_sizes(std::size_t items,
                                                                    const Device& device) const {
  if (!device) return {items, WorkSize()};
  const auto local = choose_local_size(device);
  return {(items + local - 1) / local * local, WorkSize(local)};
}

AutotuneResult WorkGroupTuner::tune(const Queue& queue, const Kernel& kernel,
                                    const WorkSize& global_size,
                                    const std::vector<WorkSize>& candidates,
                                    const std::vector<KernelArg>& args) const {
  check<ArgumentError>(static_cast<bool>(kernel), "[tune] the kernel must be built first");
  const auto& state = *kernel.state();
  check<DeviceError>(!queue.is_cpu() && queue.device() == state.device,
                     "[tune {}] the queue must be of the kernel's device: it was built for '{}', "
                     "the queue is of '{}'",
                     state.name, state.device.name(), queue.name());
  auto policy = kernel.policy();
  if (is_bounded_)
    policy.max_workgroup_size = policy.max_workgroup_size == 0
                                    ? max_local_
                                    : std::min(max_local_, policy.max_workgroup_size);
  return tune::measure({.queue = queue,
                        .kernel = *kernel.state(),
                        .policy = policy,
                        .global = global_size,
                        .candidates = candidates,
                        .args = args});
}

AutotuneResult WorkGroupTuner::tune(const Queue& queue) const {
  return tune(queue, kernel_, global_size_, candidates_);
}

}  // namespace netcl
