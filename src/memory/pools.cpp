// The public pools: which memory, which size classes, which bound.
#include "base/check.h"
#include "base/env.h"
#include "base/process.h"
#include "cl/state.h"
#include "memory/bucket_pool.h"
#include "memory/private_pools.h"
#include "netcl/capabilities.h"
#include "netcl/memory.h"

namespace netcl {
namespace {

std::uint64_t default_cache_bound() {
  const double gib = env::number("NETCL_MAX_CACHED_GB");
  return gib <= 0 ? 0 : static_cast<std::uint64_t>(std::min(gib, 1e6) * 1024 * 1024 * 1024);
}

// Keeps a block for ever: in a forked child or after exit began its lock and its driver may be
// unusable. It stays reachable, so that leak checkers can tell it from a mistake.
void abandon(detail::Block* block) noexcept {
  static std::atomic<detail::Block*> abandoned{nullptr};
  block->next_abandoned = abandoned.load();
  while (!abandoned.compare_exchange_weak(block->next_abandoned, block)) {
  }
}

const Context& required(const Context& context) {
  check<ArgumentError>(static_cast<bool>(context), "[BufferPool] a pool needs a context: empty");
  return context;
}

}  // namespace

BufferHandle::BufferHandle(std::shared_ptr<detail::BucketPool> pool,
                           std::unique_ptr<detail::Block> block, std::size_t nbytes)
    : pool_(std::move(pool)), block_(std::move(block)), nbytes_(nbytes) {}

BufferHandle::BufferHandle() = default;
BufferHandle::BufferHandle(BufferHandle&& other) noexcept = default;

BufferHandle& BufferHandle::operator=(BufferHandle&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::move(other.pool_);
  block_ = std::move(other.block_);
  nbytes_ = other.nbytes_;
  return *this;
}

BufferHandle::~BufferHandle() { release(); }

void BufferHandle::release() noexcept {
  if (!block_) return;
  if (process::calls_allowed())
    pool_->give_back(std::move(block_));
  else
    abandon(block_.release());
  pool_.reset();
}

const Buffer& BufferHandle::buffer() const {
  static const Buffer empty;
  return block_ ? block_->buffer : empty;
}
void* BufferHandle::host() const { return block_ ? block_->host : nullptr; }
std::size_t BufferHandle::bucket_size() const { return block_ ? block_->bytes : 0; }

Pool::~Pool() = default;
BufferHandle Pool::allocate(std::size_t nbytes) { return core_->allocate(nbytes); }
PoolStats Pool::stats() const { return core_->stats(); }
void Pool::clear() { core_->clear(); }

BufferPool::BufferPool(const Context& context)
    : Pool(detail::make_pool(required(context), detail::device_blocks(context, cl::Memory::device),
                             detail::power_of_two_class)) {}

PinnedBufferPool::PinnedBufferPool(const Queue& queue)
    : Pool(detail::make_pool(queue.context(), detail::mapped_blocks(queue),
                             detail::power_of_two_class)) {}

PersistentBufferPool::PersistentBufferPool(const Queue& queue,
                                           std::optional<std::uint64_t> max_cached_bytes)
    : Pool(detail::make_pool(queue.context(), detail::queue_blocks(queue), detail::persistent_class,
                             max_cached_bytes.value_or(default_cache_bound()))) {}

PersistentPoolStats PersistentBufferPool::get_stats() const {
  PersistentPoolStats result;
  static_cast<PoolStats&>(result) = core_->stats();
  result.max_cached_bytes = core_->max_cached();
  result.buckets = core_->cached_blocks();
  return result;
}

std::shared_ptr<PinnedBufferPool> get_pinned_pool(const Queue& queue) {
  return queue.state().attachments.get<PinnedBufferPool>(
      [&] { return new PinnedBufferPool(queue); });
}

std::shared_ptr<PersistentBufferPool> get_persistent_pool(const Queue& queue) {
  process::require("get_persistent_pool");
  check<ArgumentError>(static_cast<bool>(queue),
                       "[get_persistent_pool] the queue must not be empty");
  if (auto* own = detail::private_pools(); own != nullptr && !queue.is_cpu()) [[unlikely]]
    return own->of(queue);
  return queue.state().attachments.get<PersistentBufferPool>(
      [&] { return new PersistentBufferPool(queue); });
}

PersistentBufferPool& detail::persistent_pool(const Queue& queue) {
  if (auto* own = private_pools(); own != nullptr && !queue.is_cpu()) [[unlikely]]
    return *own->of(queue);
  return queue.state().attachments.ref<PersistentBufferPool>(
      [&] { return new PersistentBufferPool(queue); });
}

bool is_integrated_gpu(const Queue& queue) { return device_profile(queue).is_integrated; }
bool has_svm_support(const Queue& queue) { return device_profile(queue).has_coarse_svm; }

Buffer create_pinned_buffer(const Queue& queue, std::size_t nbytes) {
  return cl::create_buffer(required(queue.context()).get(), cl::Memory::host_visible,
                           std::max<std::size_t>(nbytes, 1));
}

Buffer create_zero_copy_buffer(const Queue& queue, void* memory, std::size_t nbytes) {
  check<ArgumentError>(memory != nullptr && nbytes > 0,
                       "[create_zero_copy_buffer] the memory must not be empty: {} bytes", nbytes);
  return cl::wrap_host_memory(required(queue.context()).get(), memory, nbytes);
}

}  // namespace netcl
