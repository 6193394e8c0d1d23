// Memory of a capture: while its recorder is installed, get_persistent_pool() of the thread gives
// these pools. What a step releases and takes again is reused among its own commands, and nobody
// else ever gets it.
#pragma once

#include <memory>
#include <vector>

#include "netcl/memory.h"

namespace netcl::detail {

class PrivatePools {
 public:
  std::shared_ptr<PersistentBufferPool> of(const Queue& queue);
  std::uint64_t bytes_allocated() const;

 private:
  struct Entry {
    Queue queue;
    std::shared_ptr<PersistentBufferPool> pool;
  };
  std::vector<Entry> entries_;  // one thread at a time captures
};

// Until the end of the scope, on this thread, wherever commands are recorded.
class PrivatePoolScope {
 public:
  explicit PrivatePoolScope(PrivatePools& pools);
  ~PrivatePoolScope();
  PrivatePoolScope(const PrivatePoolScope&) = delete;
  PrivatePoolScope& operator=(const PrivatePoolScope&) = delete;

 private:
  PrivatePools* before_;
};

// The pools of this thread's scope; null outside of one and where recording pauses.
PrivatePools* private_pools();

// get_persistent_pool() without a share: it lives as long as the queue, or the capture.
PersistentBufferPool& persistent_pool(const Queue& queue);

}  // namespace netcl::detail
