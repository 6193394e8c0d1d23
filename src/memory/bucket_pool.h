// The machine inside all pools: free lists per size class under one lock, with an optional bound on
// what is kept.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory/block.h"
#include "netcl/memory.h"

namespace netcl::detail {

using SizeClass = std::size_t (*)(std::size_t nbytes);
std::size_t power_of_two_class(std::size_t nbytes);
std::size_t persistent_class(std::size_t nbytes);

class PoolGroup;
inline constexpr auto kUnbounded = std::numeric_limits<std::uint64_t>::max();

class BucketPool : public std::enable_shared_from_this<BucketPool> {
 public:
  BucketPool(std::weak_ptr<PoolGroup> group, std::unique_ptr<BlockSource> source,
             SizeClass size_class, std::uint64_t max_cached, bool is_private);

  BufferHandle allocate(std::size_t nbytes);
  void give_back(std::unique_ptr<Block> block) noexcept;
  void clear();
  PoolStats stats() const;
  std::map<std::size_t, std::size_t> cached_blocks() const;
  std::uint64_t max_cached() const { return max_cached_; }
  void settle() { source_->settle(); }

 private:
  struct Bucket {
    std::vector<std::unique_ptr<Block>> free;
    std::uint64_t last_use = 0;
  };
  using Blocks = std::vector<std::unique_ptr<Block>>;

  std::unique_ptr<Block> take_cached(std::size_t bytes);
  std::unique_ptr<Block> make_block(std::size_t bytes, std::size_t nbytes);
  Blocks evict_over_bound();

  std::weak_ptr<PoolGroup> group_;
  std::unique_ptr<BlockSource> source_;
  SizeClass size_class_;
  std::uint64_t max_cached_;
  bool is_private_;  // of one capture, which reuses memory that its own commands point to
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, Bucket> buckets_;
  std::uint64_t clock_ = 0;
  PoolStats stats_;
};

// The pools that share one context's memory: when one cannot allocate, all give up their caches.
class PoolGroup {
 public:
  void add(const std::shared_ptr<BucketPool>& pool);
  void trim();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<BucketPool>> pools_;
};

// Called before pools give up their caches for want of memory: for who keeps leases that it can do
// without.
using Trimmer = void (*)();
void set_trimmer(Trimmer trimmer);

// A pool in the group of its context; the CPU backend's pools have a group of their own.
std::shared_ptr<BucketPool> make_pool(const Context& context, std::unique_ptr<BlockSource> source,
                                      SizeClass size_class, std::uint64_t max_cached = kUnbounded,
                                      bool is_private = false);

}  // namespace netcl::detail
