// Autotuner: a list of kernels, their results, and the way of results into the TuningStore.
#include "netcl/autotuner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "netcl/capabilities.h"
#include "netcl/diagnostics.h"
#include "tune/measure.h"
#include "tune/progress.h"
#include "tune/results.h"

namespace netcl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kUntuned = 64;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Raises the generation and writes the file however tune_all ends.
class Publication {
 public:
  ~Publication() {
    if (!changed_) return;
    tune::raise_results_generation();
    try {
      default_tuning_store().save_quietly();
    } catch (const std::exception& error) {  // Ctrl+C once more: the exit saves what is left
      log::warn(error.what());
    }
  }
  void changed() { changed_ = true; }

 private:
  bool changed_ = false;
};

}  // namespace

struct Autotuner::Impl {
  struct Entry {
    std::string name;
    Kernel kernel;
    WorkSize global;
    std::vector<KernelArg> args;
    std::string dtypes;
  };
  struct Result {
    std::string name, dtypes;
    std::vector<std::size_t> global;
    AutotuneResult result;
  };

  Device device;
  std::vector<Entry> entries;
  std::vector<Result> results;  // in the order in which they were found
  TuningStore file;             // what save() writes: results, and what load() brought along

  const Result* find(const std::string& name, const std::vector<std::size_t>& global,
                     std::string_view dtypes) const {
    const auto found = std::find_if(results.rbegin(), results.rend(), [&](const Result& r) {
      return r.name == name && r.global == global && (dtypes.empty() || r.dtypes == dtypes);
    });
    return found == results.rend() ? nullptr : &*found;
  }

  void put(Result result) {
    std::erase_if(results, [&](const Result& r) {
      return r.name == result.name && r.global == result.global && r.dtypes == result.dtypes;
    });
    results.push_back(std::move(result));
  }

  bool is_done(const Entry& entry) const {
    return find(entry.name, entry.global.to_vector(), entry.dtypes) != nullptr;
  }

  void tune(const Queue& queue, const Entry& entry) {
    auto& kernel = *entry.kernel.state();
    const auto result = tune::measure({.queue = queue,
                                       .kernel = kernel,
                                       .policy = entry.kernel.policy(),
                                       .global = entry.global,
                                       .args = entry.args});
    auto key = tune::key_of(kernel, entry.global, entry.args);
    const auto record = tune::to_record(result);
    tune::keep(key, record);
    kernel.memo.set_tuned(tune::explicit_size(result));
    file.record(key, record);
    // Under both names: launches know the function's, lookup() after load() the caller's.
    key.kernel = entry.name;
    file.record(key, record);
    put({entry.name, entry.dtypes, entry.global.to_vector(), result});
  }

  std::size_t untuned(const std::string& name) const {
    const auto& profile = device_profile(device);
    auto limit = std::min(kUntuned, std::max<std::size_t>(profile.max_work_group_size, 1));
    if (!profile.max_work_item_sizes.empty())
      limit = std::min(limit, profile.max_work_item_sizes[0]);
    for (const auto& entry : entries)
      if (entry.name == name) limit = std::min(limit, entry.kernel.max_work_group_size());
    return std::bit_floor(limit);
  }
};

Autotuner::Autotuner(const Device& device) : impl_(std::make_unique<Impl>()) {
  if (!device)
    fail<DeviceError>("[Autotuner] tuning needs an OpenCL device: the CPU backend has none; {}",
                      device_advice());
  impl_->device = device;
}
Autotuner::~Autotuner() = default;
Autotuner::Autotuner(Autotuner&&) noexcept = default;
Autotuner& Autotuner::operator=(Autotuner&&) noexcept = default;

void Autotuner::add(const std::string& name, const Kernel& kernel, const WorkSize& global_size,
                    const std::vector<KernelArg>& args) {
  check<ArgumentError>(static_cast<bool>(kernel), "[Autotuner] '{}' must be built first", name);
  check<DeviceError>(kernel.state()->device == impl_->device,
                     "[Autotuner] '{}' must be built for the tuner's device: it is for '{}', not "
                     "'{}'",
                     name, kernel.state()->device.name(), impl_->device.name());
  check<ShapeError>(!global_size.empty() && global_size.total() > 0,
                    "[Autotuner] the global size of '{}' must not be empty: {}", name,
                    global_size.to_string());
  const std::size_t expected = kernel.parameters().size();
  check<ArgumentError>(args.empty() || args.size() == expected,
                       "[Autotuner] '{}' must be given no arguments or {}: {}", name, expected,
                       args.size());
  impl_->entries.push_back(
      {name, kernel, global_size, args, tune::dtypes_of(*kernel.state(), args)});
}

std::size_t Autotuner::tune_all(const Queue& queue, const TuneOptions& options) {
  check<DeviceError>(!queue.is_cpu() && queue.device() == impl_->device,
                     "[Autotuner] the queue must be of the tuner's device: '{}', not '{}'",
                     impl_->device.name(), queue.name());
  std::vector<const Impl::Entry*> open;
  for (const auto& entry : impl_->entries)
    if (!impl_->is_done(entry)) open.push_back(&entry);
  const auto start = Clock::now();
  Publication publication;
  tune::ProgressBar bar(open.size(), options.show_progress);
  std::exception_ptr failure;
  std::size_t tuned = 0, done = 0;
  for (const auto* entry : open) {
    interrupt::poll();
    // Never before the first: however small the budget, calling again gets to the end.
    if (done > 0 && options.budget_seconds > 0 && seconds_since(start) >= options.budget_seconds)
      break;
    bar.show(done, entry->name, seconds_since(start));
    try {
      impl_->tune(queue, *entry);
      publication.changed();
      ++tuned;
    } catch (const Interrupted&) {
      throw;
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
    bar.show(++done, entry->name, seconds_since(start));
    if (options.on_progress)
      options.on_progress({done, open.size(), entry->name, seconds_since(start)});
  }
  if (failure) std::rethrow_exception(failure);
  return tuned;
}

WorkSize Autotuner::lookup(const std::string& name, const WorkSize& global_size,
                           std::string_view dtypes) const {
  const auto* found = impl_->find(name, global_size.to_vector(), dtypes);
  const auto size = found == nullptr ? WorkSize() : tune::explicit_size(found->result);
  return size.empty() ? WorkSize(impl_->untuned(name)) : size;
}

std::map<std::pair<std::string, std::vector<std::size_t>>, WorkSize> Autotuner::results() const {
  std::map<std::pair<std::string, std::vector<std::size_t>>, WorkSize> all;
  for (const auto& result : impl_->results)
    all[{result.name, result.global}] = lookup(result.name, WorkSize(result.global));
  return all;
}

std::optional<AutotuneResult> Autotuner::result(const std::string& name,
                                                const WorkSize& global_size,
                                                std::string_view dtypes) const {
  const auto* found = impl_->find(name, global_size.to_vector(), dtypes);
  return found == nullptr ? std::nullopt : std::optional(found->result);
}

void Autotuner::save(const std::string& path) const { impl_->file.save(path); }

void Autotuner::load(const std::string& path) {
  TuningStore loaded;
  loaded.load(path);
  impl_->file.load(path);
  const auto& profile = device_profile(impl_->device);
  for (const auto& [key, record] : loaded.entries()) {
    // Entries of more than three sizes describe problems of built-in operations.
    if (key.device != profile.name || key.driver != profile.driver_version ||
        key.global_size.size() > 3)
      continue;
    tune::keep(key, record);
    impl_->put({key.kernel, key.dtypes, key.global_size, tune::from_record(record)});
  }
  tune::raise_results_generation();
}

void Autotuner::clear() {
  impl_->results.clear();
  impl_->file.clear();
}

}  // namespace netcl
