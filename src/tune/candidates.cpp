// The lists are short on purpose: every candidate costs a few launches, and drivers for processors
// compile the kernel anew for each local size.
#include "tune/candidates.h"

#include <algorithm>
#include <bit>

#include "kernel/launch.h"

namespace netcl::tune {
namespace {

constexpr std::size_t kUntuned = 64;

std::size_t largest_divisor(std::size_t of, std::size_t at_most) {
  std::size_t divisor = std::max<std::size_t>(std::min(of, at_most), 1);
  while (of % divisor != 0) --divisor;
  return divisor;
}

// Totals around 64 to 256 win most often; what comes late may not be reached by a short search.
int rank_of_total(std::size_t total) {
  constexpr std::array<std::size_t, 8> kOrder{256, 128, 64, 32, 512, 1024, 16, 8};
  const auto* found = std::find(kOrder.begin(), kOrder.end(), total);
  return static_cast<int>(found - kOrder.begin());
}

void add_powers(std::vector<WorkSize>& list) {
  for (std::size_t size = 1; size <= kLargestCandidate; size *= 2) list.emplace_back(size);
}

// Where the global size has few powers of two in it, its other divisors.
void add_divisors(std::vector<WorkSize>& list, const WorkSize& global) {
  for (const std::size_t at_most : {64, 128, 256})
    list.emplace_back(largest_divisor(global[0], at_most));
}

// At least as wide in the first dimension as a quarter of the second: neighbours in memory are
// neighbours in dimension 0.
void add_products_2d(std::vector<WorkSize>& list) {
  for (const int total : {0, 4, 5, 6, 7, 8, 10})
    for (int j = 0; j <= total; ++j)
      if (const int i = total - j; j <= i + 2) list.push_back({1 << i, 1 << j});
}

void add_products_3d(std::vector<WorkSize>& list) {
  for (const int total : {0, 4, 6, 8})
    for (int k = 0; 3 * k <= total; ++k)
      for (int j = k; 2 * j + k <= total; ++j)
        list.push_back({1 << (total - j - k), 1 << j, 1 << k});
}

// A zero is left for the launch to complain about.
std::size_t up(std::size_t size, std::size_t to) {
  return to == 0 ? size : (size + to - 1) / to * to;
}

}  // namespace

SizeLimits size_limits(const detail::KernelState& kernel, const LaunchPolicy& policy) {
  SizeLimits limits;
  limits.total = kernel.limits.work_group_size;
  if (policy.max_workgroup_size != 0)
    limits.total = std::min(limits.total, policy.max_workgroup_size);
  limits.each = kernel.max_items;
  limits.rounds_up = policy.guards_range;
  limits.is_fixed = kernel.limits.required_size[0] != 0;
  limits.driver_may_choose = policy.max_workgroup_size == 0 && !limits.is_fixed;
  return limits;
}

bool allows(const SizeLimits& limits, const WorkSize& global, const WorkSize& local) {
  if (local.empty()) return limits.driver_may_choose;
  if (local.rank() > global.rank() || local.total() > limits.total) return false;
  for (unsigned i = 0; i < global.rank(); ++i) {
    if (local[i] == 0 || local[i] > limits.each[i]) return false;
    // Rounded up, a work-group that is twice as large as the range would idle for nothing.
    const bool fits =
        limits.rounds_up ? local[i] <= std::bit_ceil(global[i]) : global[i] % local[i] == 0;
    if (!fits) return false;
  }
  return true;
}

WorkSize untuned_local_size(const detail::KernelState& kernel, const LaunchPolicy& policy,
                            const WorkSize& global) {
  if (!policy.workgroup_size.empty()) return policy.workgroup_size;
  if (kernel.limits.required_size[0] != 0) return default_local_size(kernel, global, {});
  const auto limits = size_limits(kernel, policy);
  const auto size = std::bit_floor(std::min({kUntuned, limits.total, limits.each[0]}));
  if (limits.rounds_up) return std::min(size, std::bit_ceil(global[0]));
  const auto local = default_local_size(kernel, global, size);
  if (local.empty() && !limits.driver_may_choose) return largest_divisor(global[0], size);
  return local;
}

std::vector<WorkSize> default_candidates(const SizeLimits& limits, const WorkSize& global,
                                         const WorkSize& untuned) {
  const auto first = untuned.padded(global.rank());
  if (limits.is_fixed) return {first};
  std::vector<WorkSize> list;
  if (global.rank() == 1) {
    add_powers(list);
    if (!limits.rounds_up && global[0] % 64 != 0) add_divisors(list, global);
  } else {
    global.rank() == 2 ? add_products_2d(list) : add_products_3d(list);
  }
  std::erase_if(list,
                [&](const auto& size) { return size == first || !allows(limits, global, size); });
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return rank_of_total(a.total()) < rank_of_total(b.total());
  });
  std::vector<WorkSize> result{first};
  if (!first.empty() && limits.driver_may_choose) result.emplace_back();
  for (const auto& size : list)
    if (std::find(result.begin(), result.end(), size) == result.end()) result.push_back(size);
  return result;
}

WorkSize rounded_up(const WorkSize& global, const WorkSize& local) {
  if (local.empty() || global.empty()) return global;
  const auto size = [&](unsigned i) { return static_cast<std::int64_t>(up(global[i], local[i])); };
  switch (global.rank()) {
    case 1:
      return {size(0)};
    case 2:
      return {size(0), size(1)};
    default:
      return {size(0), size(1), size(2)};
  }
}

}  // namespace netcl::tune
