// Kernel::launch: which local size a launch without one gets. The usual case, a size that an
// earlier launch already found, builds no string and allocates nothing.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/state.h"
#include "kernel/launch.h"
#include "tune/candidates.h"
#include "tune/measure.h"
#include "tune/results.h"

namespace netcl {
namespace {

using detail::KernelState;
using detail::LaunchSignature;
using Args = std::span<const KernelArg>;

constexpr std::string_view kOwnOption = "-cl-kernel-arg-info";  // compile() puts it first

// The same function for another device of the same context.
std::shared_ptr<KernelState> sibling_for(KernelState& kernel, const Queue& queue) {
  const auto& target = queue.state();
  if (kernel.context != target.context.get())
    fail<DeviceError>(
        "[kernel {}] the queue must be of the context that the kernel was built for: it was built "
        "for '{}', the queue is of '{}'",
        kernel.name, kernel.device.name(), target.name);
  if (auto known = kernel.memo.find_sibling(target.device)) return known;
  if (kernel.is_wrapped)
    return adopt_program(target.context, target.device, kernel.program.get())->find(kernel.name);
  auto options = std::string_view(kernel.options).substr(kOwnOption.size());
  if (options.starts_with(' ')) options.remove_prefix(1);
  std::vector<std::string> list;
  if (!options.empty()) list.emplace_back(options);
  auto built = compile(target.context, target.device, *kernel.source, list)->find(kernel.name);
  kernel.memo.put_sibling(target.device, built);
  return built;
}

std::uint64_t packed_dtypes(Args args) {
  std::uint64_t packed = 1;
  for (const auto& arg : args)
    if (arg.kind() == KernelArg::Kind::memory)
      packed = packed * 11 + (arg.dtype() ? static_cast<std::uint64_t>(*arg.dtype()) : 10);
  return packed;
}

// Not with a wrong number of arguments: the launch will say so. Local memory was sized by the
// caller for the work-groups that he has in mind: trying larger ones would overrun it.
bool may_measure(const KernelState& kernel, const LaunchPolicy& policy, Args args) {
  return policy.tune && args.size() == kernel.parameters.size() &&
         std::none_of(args.begin(), args.end(),
                      [](const KernelArg& arg) { return arg.kind() == KernelArg::Kind::local; });
}

// The stored result, where it can be launched: it may come from a file that someone edited, or be
// of a spec with other limits.
std::optional<WorkSize> stored_local_size(KernelState& kernel, const TuningKey& key,
                                          const tune::SizeLimits& limits, const WorkSize& global) {
  const auto record = default_tuning_store().find(key);
  if (!record) return std::nullopt;
  const WorkSize local(record->local_size);
  if (!tune::allows(limits, global, local)) return std::nullopt;
  kernel.memo.set_tuned(tune::explicit_size(tune::from_record(*record)));
  return local;
}

// What goes wrong in a search is left to the launch, whose message is about the launch.
std::optional<WorkSize> measured_local_size(const Queue& queue, KernelState& kernel,
                                            const LaunchPolicy& policy, const WorkSize& global,
                                            Args args, const TuningKey& key) {
  try {
    const auto result = tune::measure({.queue = queue,
                                       .kernel = kernel,
                                       .policy = policy,
                                       .global = global,
                                       .args = args,
                                       .is_brief = true});
    tune::keep(key, tune::to_record(result));
    kernel.memo.set_tuned(tune::explicit_size(result));
    return result.best_local_size;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    log::debug(2, "{} is not tuned: {}", kernel.name, error.what());
    return std::nullopt;
  }
}

WorkSize find_local_size(const Queue& queue, KernelState& kernel, const LaunchPolicy& policy,
                         const WorkSize& global, Args args) {
  const auto untuned = tune::untuned_local_size(kernel, policy, global);
  const auto limits = tune::size_limits(kernel, policy);
  if (limits.is_fixed || global.total() == 1) return untuned;
  const auto key = tune::key_of(kernel, global, args);
  if (const auto stored = stored_local_size(kernel, key, limits, global)) return *stored;
  if (!may_measure(kernel, policy, args)) return untuned;
  return measured_local_size(queue, kernel, policy, global, args, key).value_or(untuned);
}

WorkSize choose_local_size(const Queue& queue, KernelState& kernel, const LaunchPolicy& policy,
                           const WorkSize& global, Args args) {
  const LaunchSignature signature{global, packed_dtypes(args), policy.max_workgroup_size,
                                  policy.guards_range, policy.tune};
  auto& memo = kernel.memo;
  if (const auto known = memo.find(signature, tune::results_generation())) return *known;
  const std::lock_guard lock(memo.finding());
  const auto generation = tune::results_generation();
  if (const auto known = memo.find(signature, generation)) return *known;
  const auto local = find_local_size(queue, kernel, policy, global, args);
  memo.put(signature, local, generation);
  return local;
}

}  // namespace

Event Kernel::launch(const Queue& queue, const WorkSize& global, const WorkSize& local,
                     const KernelArg* args, std::size_t count) const {
  check<ArgumentError>(state_ != nullptr, "[Kernel] the kernel must be built first");
  process::require(state_->interned);  // before a lock that a fork may have left held
  const Args list(args, count);
  // Launches of nothing and on the CPU backend: the checks there say what is wrong.
  if (queue.is_cpu() || global.total() == 0 || global.empty())
    return enqueue_kernel(queue, *state_, global, local, list);
  const auto& target = queue.state();
  if (!(target.device == state_->device) || target.context.get() != state_->context) [[unlikely]]
    return Kernel(sibling_for(*state_, queue), policy_).launch(queue, global, local, args, count);
  const auto chosen = !local.empty() ? local
                      : !policy_.workgroup_size.empty()
                          ? policy_.workgroup_size
                          : choose_local_size(queue, *state_, policy_, global, list);
  return enqueue_kernel(queue, *state_,
                        policy_.guards_range ? tune::rounded_up(global, chosen) : global, chosen,
                        list);
}

}  // namespace netcl
