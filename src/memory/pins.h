// Buffers that recorded commands point to. When the last tensor on one is gone, its pool would hand
// the memory to somebody else; a pinned buffer is set aside instead until the last pin is gone.
#pragma once

#include <memory>

#include "memory/bucket_pool.h"

namespace netcl::detail {

class BufferPin {
 public:
  explicit BufferPin(Buffer buffer);
  ~BufferPin();
  BufferPin(BufferPin&& other) noexcept = default;
  BufferPin& operator=(BufferPin&&) = delete;

 private:
  Buffer buffer_;  // empty after a move
};

// Takes the block of a pinned buffer, which comes back to `pool` after the last pin. Leaves `block`
// alone and returns false when nobody holds a pin on it.
bool set_aside(std::unique_ptr<Block>& block, const std::shared_ptr<BucketPool>& pool) noexcept;

}  // namespace netcl::detail
