// Allocation, reuse and eviction. Blocks are destroyed outside the lock: freeing device memory may
// take long and must not stop the other threads.
#include "memory/bucket_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/check.h"
#include "base/process.h"
#include "cl/state.h"
#include "memory/pins.h"

namespace netcl::detail {
namespace {

constexpr std::size_t kSmallestBlock = 256;
constexpr std::size_t kLargestRequest = std::size_t{1} << 62;  // rounding up stays representable

[[noreturn]] void out_of_memory(std::size_t requested, const PoolStats& before) {
  throw OutOfMemory(
      fmt::format("[allocate] the device must have the memory: {} bytes were asked for, {} are in "
                  "use by this pool, {} were cached and have been given back",
                  requested, before.bytes_in_use, before.bytes_cached),
      requested, before.bytes_in_use, before.bytes_cached);
}

}  // namespace

std::size_t power_of_two_class(std::size_t nbytes) {
  return std::bit_ceil(std::max(nbytes, kSmallestBlock));
}

std::size_t persistent_class(std::size_t nbytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (std::size_t fixed = 1024; fixed <= kMiB; fixed *= 4)
    if (nbytes <= fixed) return fixed;
  const auto step = std::bit_floor(nbytes - 1) / 8;  // of the power of two below the request
  return (nbytes + step - 1) / step * step;
}

BucketPool::BucketPool(std::weak_ptr<PoolGroup> group, std::unique_ptr<BlockSource> source,
                       SizeClass size_class, std::uint64_t max_cached, bool is_private)
    : group_(std::move(group)),
      source_(std::move(source)),
      size_class_(size_class),
      max_cached_(max_cached),
      is_private_(is_private) {}

std::unique_ptr<Block> BucketPool::take_cached(std::size_t bytes) {
  auto& bucket = buckets_[bytes];
  bucket.last_use = ++clock_;
  if (bucket.free.empty()) return nullptr;
  auto block = std::move(bucket.free.back());  // the newest: most likely still in a cache
  bucket.free.pop_back();
  ++stats_.hits;
  stats_.bytes_cached -= bytes;
  stats_.bytes_in_use += bytes;
  return block;
}

std::unique_ptr<Block> BucketPool::make_block(std::size_t bytes, std::size_t nbytes) {
  auto block = source_->make(bytes);
  if (!block) {
    const auto before = stats();
    if (const auto group = group_.lock()) group->trim();
    block = source_->make(bytes);
    if (!block) out_of_memory(nbytes, before);
  }
  const std::lock_guard lock(mutex_);
  ++stats_.misses;
  stats_.bytes_allocated += bytes;
  stats_.bytes_in_use += bytes;
  return block;
}

BufferHandle BucketPool::allocate(std::size_t nbytes) {
  process::require("allocate");
  if (nbytes > kLargestRequest) out_of_memory(nbytes, stats());
  const auto bytes = size_class_(nbytes);
  std::unique_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    block = take_cached(bytes);
  }
  if (!block) block = make_block(bytes, nbytes);
  return BufferHandle(shared_from_this(), std::move(block), nbytes);
}

BucketPool::Blocks BucketPool::evict_over_bound() {
  Blocks evicted;
  while (stats_.bytes_cached > max_cached_) {
    Bucket* oldest = nullptr;
    for (auto& [bytes, bucket] : buckets_)
      if (!bucket.free.empty() && (oldest == nullptr || bucket.last_use < oldest->last_use))
        oldest = &bucket;
    if (oldest == nullptr) break;
    stats_.bytes_cached -= oldest->free.back()->bytes;
    evicted.push_back(std::move(oldest->free.back()));
    oldest->free.pop_back();
  }
  return evicted;
}

void BucketPool::give_back(std::unique_ptr<Block> block) noexcept {
  if (!is_private_ && set_aside(block, shared_from_this())) return;
  Blocks evicted;
  try {
    const std::lock_guard lock(mutex_);
    const auto bytes = block->bytes;
    stats_.bytes_in_use -= bytes;
    buckets_[bytes].free.push_back(std::move(block));
    stats_.bytes_cached += bytes;
    if (stats_.bytes_cached > max_cached_) evicted = evict_over_bound();
  } catch (const std::bad_alloc&) {
    // The free list could not grow: the block is destroyed instead of kept.
  }
}

void BucketPool::clear() {
  Blocks dropped;
  const std::lock_guard lock(mutex_);
  for (auto& [bytes, bucket] : buckets_) {
    std::move(bucket.free.begin(), bucket.free.end(), std::back_inserter(dropped));
    bucket.free.clear();
  }
  stats_.bytes_cached = 0;
}

PoolStats BucketPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::map<std::size_t, std::size_t> BucketPool::cached_blocks() const {
  const std::lock_guard lock(mutex_);
  std::map<std::size_t, std::size_t> counts;
  for (const auto& [bytes, bucket] : buckets_)
    if (!bucket.free.empty()) counts[bytes] = bucket.free.size();
  return counts;
}

void PoolGroup::add(const std::shared_ptr<BucketPool>& pool) {
  const std::lock_guard lock(mutex_);
  std::erase_if(pools_, [](const auto& weak) { return weak.expired(); });
  pools_.push_back(pool);
}

namespace {
std::atomic<Trimmer> g_trimmer{nullptr};
}  // namespace

void set_trimmer(Trimmer trimmer) { g_trimmer = trimmer; }

void PoolGroup::trim() {
  if (const auto trimmer = g_trimmer.load()) trimmer();
  std::vector<std::shared_ptr<BucketPool>> pools;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : pools_)
      if (auto pool = weak.lock()) pools.push_back(std::move(pool));
  }
  for (const auto& pool : pools) {
    pool->clear();
    pool->settle();
  }
}

namespace {

std::shared_ptr<PoolGroup> pool_group(const Context& context) {
  if (context) return context.state().attachments.get<PoolGroup>([] { return new PoolGroup(); });
  static auto* host_group = new std::shared_ptr<PoolGroup>(std::make_shared<PoolGroup>());
  return *host_group;
}

}  // namespace

std::shared_ptr<BucketPool> make_pool(const Context& context, std::unique_ptr<BlockSource> source,
                                      SizeClass size_class, std::uint64_t max_cached,
                                      bool is_private) {
  const auto group = pool_group(context);
  auto pool =
      std::make_shared<BucketPool>(group, std::move(source), size_class, max_cached, is_private);
  group->add(pool);
  return pool;
}

}  // namespace netcl::detail
