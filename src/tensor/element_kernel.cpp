// Parameters of element kernels: looked up once per kernel and size class, then remembered.
#include "tensor/element_kernel.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "base/env.h"
#include "base/format.h"
#include "cl/state.h"
#include "kernel/builtin.h"
#include "netcl/capabilities.h"
#include "tune/first_use.h"
#include "tune/results.h"

namespace netcl {
namespace {

struct LaunchMemo {
  std::mutex mutex;
  std::uint64_t generation = 0;
  std::unordered_map<std::string, ElementLaunch> launches;
};

// Elements per class: a power of two, at least what one small work-group does.
std::uint64_t size_class(std::uint64_t n) { return std::bit_ceil(std::max<std::uint64_t>(n, 64)); }

// On a CPU a work-group is a loop and starting one costs more than many elements; a GPU wants one
// element per work-item and as many groups as possible.
Parameters shipped_defaults(const ExtendedDeviceProfile& profile) {
  const auto local = std::min<std::int64_t>(static_cast<std::int64_t>(profile.max_work_group_size),
                                            profile.is_cpu ? 256 : 64);
  return {{"WG", local}, {"ITEMS", profile.is_cpu ? 4 : 1}};
}

std::string memo_key(const Queue& queue, const ElementKernel& kernel, std::uint64_t n) {
  std::string key = std::to_string(queue.device().int_ptr());
  key.append("|").append(kernel.path);
  for (const auto& define : kernel.defines) key.append("|").append(define);
  return key.append("|").append(std::to_string(size_class(n)));
}

Parameters parameters_for(const Queue& queue, const TunableProblem& problem,
                          const std::function<TunableProblem()>& scratch) {
  const auto record = default_tuning_store().find(problem.key);
  if (record != nullptr && tune::is_usable(problem.tunables, problem.declines, *record))
    return record->parameters;
  if (!tune::is_measuring() && env::flag("NETCL_AUTOTUNE"))
    return tune::measure_now(queue, scratch);
  return problem.defaults;
}

}  // namespace

ElementLaunch compile_elements(const Queue& queue, const ElementKernel& kernel,
                               const Parameters& parameters) {
  auto defines = kernel.defines;
  defines.push_back(fmt::format("ITEMS={}", parameters.at("ITEMS")));
  ElementLaunch launch{builtin_kernel(queue, kernel.path, kernel.name, defines),
                       static_cast<std::size_t>(parameters.at("WG")),
                       static_cast<std::size_t>(parameters.at("ITEMS"))};
  // A driver may allow this kernel less than the device in general.
  launch.local = std::min(launch.local, launch.kernel->limits.work_group_size);
  return launch;
}

TunableProblem element_problem(const Queue& queue, const ElementKernel& kernel, std::uint64_t n) {
  const auto& profile = device_profile(queue);
  TunableProblem problem;
  problem.op = kernel.name;
  problem.tunables = {{"WG", {16, 64, 256, 1024}}, {"ITEMS", {1, 4, 16}}};
  problem.defaults = shipped_defaults(profile);
  problem.declines = [limit = profile.max_work_group_size](const Parameters& parameters) {
    const auto local = static_cast<std::size_t>(parameters.at("WG"));
    return local <= limit ? std::string()
                          : fmt::format("the device takes at most {} items per group", limit);
  };
  const auto shipped = compile_elements(queue, kernel, problem.defaults);
  problem.key = {profile.name,    profile.driver_version, kernel.name, shipped.kernel->source_hash,
                 {size_class(n)}, kernel.dtypes};
  return problem;
}

ElementLaunch element_launch(const Queue& queue, const ElementKernel& kernel, std::uint64_t n,
                             const std::function<TunableProblem()>& scratch) {
  const auto memo =
      queue.context().state().attachments.get<LaunchMemo>([] { return new LaunchMemo(); });
  const auto key = memo_key(queue, kernel, n);
  const auto generation = tune::results_generation();
  {
    const std::lock_guard lock(memo->mutex);
    if (memo->generation != generation) memo->launches.clear();
    memo->generation = generation;
    const auto found = memo->launches.find(key);
    if (found != memo->launches.end()) return found->second;
  }
  const auto problem = element_problem(queue, kernel, n);
  const auto launch = compile_elements(queue, kernel, parameters_for(queue, problem, scratch));
  const std::lock_guard lock(memo->mutex);
  if (memo->generation == generation) memo->launches.emplace(key, launch);
  return launch;
}

}  // namespace netcl
