// What KernelSelector and the ops' calls remember. A key holds everything that decides, word for
// word: shorter keys (a hash, a device's name) would one day give one problem's kernel to another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "netcl/kernel_selector.h"

namespace netcl::detail {

// Collects words without allocating for problems of ordinary size.
class MemoKey {
 public:
  void add(std::uint64_t word) {
    if (size_ < inline_.size())
      inline_[size_] = word;
    else
      spill(word);
    ++size_;
    hash_ = mix(hash_ ^ word);
  }
  void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  void add(std::string_view text);
  void add(const KernelValue& value);
  void add(const KernelProblem& problem);

  std::span<const std::uint64_t> words() const {
    return {spilled_.empty() ? inline_.data() : spilled_.data(), size_};
  }
  std::uint64_t hash() const { return hash_; }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ (x >> 29);
  }
  void spill(std::uint64_t word);

  std::array<std::uint64_t, 64> inline_;  // filled up to size_
  std::vector<std::uint64_t> spilled_;    // everything, once the array is full
  std::size_t size_ = 0;
  std::uint64_t hash_ = 0;
};

// Readers of different keys do not meet on a lock. Bounded: a program with ever new shapes forgets
// old entries, which cost microseconds to make again.
template <class Value, std::size_t kEntriesPerShard>
class WordMemo {
 public:
  using Remembered = std::shared_ptr<const Value>;

  Remembered find(const MemoKey& key) const {
    const auto& shard = shard_of(key);
    const std::shared_lock lock(shard.mutex);
    const auto found = shard.entries.find(key);
    return found == shard.entries.end() ? nullptr : found->second;
  }
  // The value that is in the memo afterwards, and whether it is the one given.
  std::pair<Remembered, bool> insert(const MemoKey& key, Remembered value) {
    auto& shard = shard_of(key);
    const std::unique_lock lock(shard.mutex);
    const auto [at, inserted] = shard.make_room().try_emplace(stored(key), std::move(value));
    return {at->second, inserted};
  }
  void replace(const MemoKey& key, Remembered value) {
    auto& shard = shard_of(key);
    const std::unique_lock lock(shard.mutex);
    shard.make_room().insert_or_assign(stored(key), std::move(value));
  }
  void clear() {
    for (auto& shard : shards_) {
      const std::unique_lock lock(shard.mutex);
      shard.entries.clear();
    }
  }
  std::size_t size() const {
    std::size_t total = 0;
    for (const auto& shard : shards_) {
      const std::shared_lock lock(shard.mutex);
      total += shard.entries.size();
    }
    return total;
  }

 private:
  static constexpr std::size_t kShards = 16;

  struct StoredKey {
    std::vector<std::uint64_t> words;
    std::uint64_t hash;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const StoredKey& key) const noexcept { return key.hash; }
    std::size_t operator()(const MemoKey& key) const noexcept { return key.hash(); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const StoredKey& a, const StoredKey& b) const { return a.words == b.words; }
    bool operator()(const MemoKey& a, const StoredKey& b) const {
      return a.hash() == b.hash && std::ranges::equal(a.words(), b.words);
    }
    bool operator()(const StoredKey& a, const MemoKey& b) const { return (*this)(b, a); }
  };
  using Entries = std::unordered_map<StoredKey, Remembered, Hash, Equal>;
  struct alignas(64) Shard {
    mutable std::shared_mutex mutex;
    Entries entries;

    Entries& make_room() {
      if (entries.size() >= kEntriesPerShard) entries.clear();
      return entries;
    }
  };

  static StoredKey stored(const MemoKey& key) {
    const auto words = key.words();
    return {{words.begin(), words.end()}, key.hash()};
  }
  const Shard& shard_of(const MemoKey& key) const { return shards_[key.hash() >> 60]; }
  Shard& shard_of(const MemoKey& key) { return shards_[key.hash() >> 60]; }

  std::array<Shard, kShards> shards_;
};

using DecisionMemo = WordMemo<KernelDecision, 4096>;
using Remembered = DecisionMemo::Remembered;

// A number for the content of a profile, the same for equal profiles in the whole process. The
// address would not do: profiles of recorded devices live on the stack.
std::uint64_t profile_number(const ExtendedDeviceProfile& profile);

}  // namespace netcl::detail
