#include "memory/private_pools.h"

#include <utility>

#include "cl/recording.h"
#include "memory/bucket_pool.h"

namespace netcl::detail {
namespace {

constinit thread_local PrivatePools* t_pools = nullptr;

}  // namespace

std::shared_ptr<PersistentBufferPool> PrivatePools::of(const Queue& queue) {
  for (const auto& entry : entries_)
    if (entry.queue == queue) return entry.pool;
  auto core = make_pool(queue.context(), queue_blocks(queue), persistent_class, kUnbounded, true);
  entries_.push_back(
      {queue, std::shared_ptr<PersistentBufferPool>(new PersistentBufferPool(std::move(core)))});
  return entries_.back().pool;
}

std::uint64_t PrivatePools::bytes_allocated() const {
  std::uint64_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry.pool->stats().bytes_allocated;
  return bytes;
}

PrivatePoolScope::PrivatePoolScope(PrivatePools& pools) : before_(std::exchange(t_pools, &pools)) {}
PrivatePoolScope::~PrivatePoolScope() { t_pools = before_; }

PrivatePools* private_pools() { return cl::is_recording() ? t_pools : nullptr; }

}  // namespace netcl::detail
