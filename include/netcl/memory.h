// Buffers that are used again instead of being allocated again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "netcl/opencl.h"

namespace netcl {

namespace detail {
class BucketPool;
class PrivatePools;
struct Block;
}  // namespace detail

// One lease of a pool. Moves, does not copy; goes back to its pool when released or destroyed.
// Releasing twice does nothing. A lease may outlive its pool.
class BufferHandle {
 public:
  BufferHandle();
  BufferHandle(std::shared_ptr<detail::BucketPool> pool, std::unique_ptr<detail::Block> block,
               std::size_t nbytes);
  BufferHandle(BufferHandle&& other) noexcept;
  BufferHandle& operator=(BufferHandle&& other) noexcept;
  ~BufferHandle();

  const Buffer& buffer() const;  // empty for the CPU backend and after release
  void* host() const;            // the memory of the CPU backend or of a pinned lease, else null
  std::size_t nbytes() const { return nbytes_; }  // as asked for
  std::size_t bucket_size() const;                // as allocated
  void release() noexcept;
  explicit operator bool() const { return block_ != nullptr; }

 private:
  std::shared_ptr<detail::BucketPool> pool_;
  std::unique_ptr<detail::Block> block_;
  std::size_t nbytes_ = 0;
};

struct PoolStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;           // successful fresh allocations
  std::uint64_t bytes_allocated = 0;  // by this pool since it was made
  std::uint64_t bytes_cached = 0;     // waiting to be used again
  std::uint64_t bytes_in_use = 0;     // in leases
  double hit_rate() const {
    const auto total = hits + misses;
    return total == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(total);
  }
};

// What the pools have in common. Thread-safe. A failing allocation drops what the pools of the
// context keep, is tried once more, and then throws OutOfMemory with the figures.
class Pool {
 public:
  virtual ~Pool();
  BufferHandle allocate(std::size_t nbytes);
  PoolStats stats() const;
  void clear();  // drops what is cached; leases are not touched

 protected:
  explicit Pool(std::shared_ptr<detail::BucketPool> core) : core_(std::move(core)) {}
  std::shared_ptr<detail::BucketPool> core_;
};

// Power-of-two buckets, keeps everything until clear().
class BufferPool : public Pool {
 public:
  explicit BufferPool(const Context& context);
};

// The same with page-locked host memory, mapped for its whole life: BufferHandle::host() is where
// the host writes.
class PinnedBufferPool : public Pool {
 public:
  explicit PinnedBufferPool(const Queue& queue);
};

struct PersistentPoolStats : PoolStats {
  std::uint64_t max_cached_bytes = 0;
  std::map<std::size_t, std::size_t> buckets;  // bucket size -> cached buffers
};

// Bounded: 1 KiB, 4 KiB ... 1 MiB, above that eight classes per power of two (at most 12.5 %
// unused), and when more than `max_cached_bytes` wait for use, the least recently used classes go
// first. This is the pool behind Tensor, one per queue; on the CPU backend it keeps host memory.
class PersistentBufferPool : public Pool {
 public:
  explicit PersistentBufferPool(const Queue& queue,
                                std::optional<std::uint64_t> max_cached_bytes = {});
  PersistentPoolStats get_stats() const;

 private:
  friend class detail::PrivatePools;
  explicit PersistentBufferPool(std::shared_ptr<detail::BucketPool> core) : Pool(std::move(core)) {}
};

std::shared_ptr<PinnedBufferPool> get_pinned_pool(const Queue& queue);
std::shared_ptr<PersistentBufferPool> get_persistent_pool(const Queue& queue);

// Host and device share memory: integrated GPUs and CPU devices.
bool is_integrated_gpu(const Queue& queue);
bool has_svm_support(const Queue& queue);
// One page-locked (ALLOC_HOST_PTR) buffer.
Buffer create_pinned_buffer(const Queue& queue, std::size_t nbytes);
// A buffer over the caller's memory (USE_HOST_PTR): nothing is copied, and the memory must outlive
// the buffer and all work on it.
Buffer create_zero_copy_buffer(const Queue& queue, void* memory, std::size_t nbytes);

}  // namespace netcl
