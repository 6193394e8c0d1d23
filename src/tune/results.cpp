// Keys, conversions and the delayed writing of the default store.
#include "tune/results.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "base/format.h"
#include "base/log.h"
#include "base/process.h"
#include "netcl/capabilities.h"
#include "tune/compare.h"

namespace netcl::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSaveInterval{2};
constexpr std::size_t kMaxNote = 200;

std::atomic<std::uint64_t> g_generation{1};
std::atomic<Clock::rep> g_last_save{0};  // 0: nothing was kept yet

void save_at_exit() {
  try {
    default_tuning_store().save_quietly();
  } catch (const std::exception& error) {  // Ctrl+C while the process is already leaving
    log::warn(error.what());
  }
}

// True for one caller per interval.
bool is_time_to_save() {
  const auto now = Clock::now().time_since_epoch().count();
  auto last = g_last_save.load();
  if (last == 0) {
    g_last_save.compare_exchange_strong(last, now);
    return false;
  }
  return now - last > Clock::duration(kSaveInterval).count() &&
         g_last_save.compare_exchange_strong(last, now);
}

std::string element_name(const KernelParameterInfo& parameter) {
  const auto type = element_type(parameter.type);
  return type ? std::string(name_of(*type)) : parameter.type;
}

bool is_memory(const KernelParameterInfo& parameter) {
  return parameter.address_space == "global" || parameter.address_space == "constant";
}

}  // namespace

std::string dtypes_of(const detail::KernelState& kernel, std::span<const KernelArg> args) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto* arg = i < args.size() ? &args[i] : nullptr;
    if (arg != nullptr ? arg->kind() != KernelArg::Kind::memory : !is_memory(kernel.parameters[i]))
      continue;
    auto name = arg != nullptr && arg->dtype() ? std::string(name_of(*arg->dtype()))
                                               : element_name(kernel.parameters[i]);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return join(names, ",");
}

TuningKey key_of(const detail::KernelState& kernel, const WorkSize& global,
                 std::span<const KernelArg> args) {
  const auto& profile = device_profile(kernel.device);
  return {profile.name,       profile.driver_version, kernel.name,
          kernel.source_hash, global.to_vector(),     dtypes_of(kernel, args)};
}

TuningRecord to_record(const AutotuneResult& result) {
  TuningRecord record;
  record.local_size = result.best_local_size.to_vector();
  record.runtime_us = result.runtime_us;
  record.default_us = result.default_us;
  for (const auto& candidate : result.candidates) {
    const double time =
        candidate.note.empty() ? candidate.runtime_us : std::numeric_limits<double>::infinity();
    record.candidates.push_back(
        {candidate.local_size.to_vector(), {}, time, candidate.note.substr(0, kMaxNote)});
  }
  // A file refuses sizes of zero, which a caller may have asked for.
  std::erase_if(record.candidates, [](const auto& candidate) {
    return std::find(candidate.local_size.begin(), candidate.local_size.end(), 0U) !=
           candidate.local_size.end();
  });
  return record;
}

AutotuneResult from_record(const TuningRecord& record) {
  AutotuneResult result;
  result.best_local_size = WorkSize(record.local_size);
  result.runtime_us = record.runtime_us;
  result.default_us = record.default_us;
  for (const auto& candidate : record.candidates)
    result.candidates.push_back({WorkSize(candidate.local_size),
                                 candidate.note.empty() ? candidate.runtime_us : 0,
                                 candidate.note});
  return result;
}

WorkSize explicit_size(const AutotuneResult& result) {
  if (!result.best_local_size.empty()) return result.best_local_size;
  const AutotuneCandidate* best = nullptr;
  for (const auto& candidate : result.candidates)
    if (candidate.note.empty() && !candidate.local_size.empty() &&
        (best == nullptr || candidate.runtime_us < best->runtime_us))
      best = &candidate;
  return best == nullptr ? WorkSize() : best->local_size;
}

void keep(const TuningKey& key, TuningRecord record) {
  auto& store = default_tuning_store();
  store.record(key, std::move(record));
  process::at_exit(save_at_exit);
  if (is_time_to_save()) store.save_quietly();
}

std::uint64_t results_generation() { return g_generation.load(std::memory_order_acquire); }
void raise_results_generation() { g_generation.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace netcl::tune
