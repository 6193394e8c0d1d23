// What earlier launches of one kernel without a local size took, so that a launch finds its size
// without building a key of the tuning store. Knows nothing about how a size was found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "netcl/kernel.h"

namespace netcl::detail {

struct KernelState;

// Everything that decides the local size of a launch of one kernel on one device.
struct LaunchSignature {
  WorkSize global;
  std::uint64_t dtypes = 0;  // of the memory arguments, packed
  std::size_t max_workgroup_size = 0;
  bool guards_range = false, tune = false;
  bool operator==(const LaunchSignature& other) const = default;
};

struct LaunchSignatureHash {
  std::size_t operator()(const LaunchSignature& s) const noexcept {
    std::size_t hash = s.global.rank() * 4 + (s.guards_range ? 2 : 0) + (s.tune ? 1 : 0);
    for (const std::size_t value :
         {s.global[0], s.global[1], s.global[2], std::size_t{s.dtypes}, s.max_workgroup_size})
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    return hash;
  }
};

class LocalSizeMemo {
 public:
  // Sizes of an older generation are forgotten: tuning found something since.
  std::optional<WorkSize> find(const LaunchSignature& signature, std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return std::nullopt;
    if (last_ != nullptr && last_->first == signature) return last_->second;  // usually in a loop
    const auto found = sizes_.find(signature);
    if (found == sizes_.end()) return std::nullopt;
    last_ = &*found;
    return found->second;
  }

  void put(const LaunchSignature& signature, const WorkSize& local, std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    // Programs with ever new sizes must not fill the memory.
    if (generation != generation_ || sizes_.size() >= kMaxEntries) {
      sizes_.clear();
      last_ = nullptr;
    }
    generation_ = generation;
    sizes_[signature] = local;
  }

  // What tuning found last, whatever the global size.
  WorkSize tuned() {
    const std::lock_guard lock(mutex_);
    return tuned_;
  }
  void set_tuned(const WorkSize& local) {
    const std::lock_guard lock(mutex_);
    if (!local.empty()) tuned_ = local;
  }

  // The same kernel built for another device of the context. Not owned: the context owns its
  // programs, and two kernels that name each other would never be freed.
  std::shared_ptr<KernelState> find_sibling(const Device& device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [of, kernel] : siblings_)
      if (of == device) return kernel.lock();
    return nullptr;
  }
  void put_sibling(const Device& device, const std::shared_ptr<KernelState>& kernel) {
    const std::lock_guard lock(mutex_);
    std::erase_if(siblings_, [&](const auto& entry) { return entry.first == device; });
    siblings_.emplace_back(device, kernel);
  }

  // Held while a size is being found: of threads that launch for the first time, one measures.
  std::mutex& finding() { return finding_; }

 private:
  static constexpr std::size_t kMaxEntries = 4096;

  std::mutex mutex_, finding_;
  std::uint64_t generation_ = 0;
  WorkSize tuned_;
  std::unordered_map<LaunchSignature, WorkSize, LaunchSignatureHash> sizes_;
  const std::pair<const LaunchSignature, WorkSize>* last_ = nullptr;  // entries do not move
  std::vector<std::pair<Device, std::weak_ptr<KernelState>>> siblings_;
};

}  // namespace netcl::detail
