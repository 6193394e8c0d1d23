// Uploads that are under way: their staging memory must live until the device has read it, however
// short-lived the tensor and the caller's array are.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "netcl/memory.h"
#include "netcl/opencl.h"

namespace netcl {

class UploadQueue {
 public:
  // Copies `from` to staging memory and enqueues the transfer; `from` is free when this returns.
  void upload(const Queue& queue, const Buffer& to, std::size_t offset, const void* from,
              std::size_t bytes, bool pinned);

 private:
  struct Transfer {
    BufferHandle pinned;
    std::unique_ptr<std::byte[]> heap;
    std::size_t bytes = 0;
    Event done;
  };

  void retire(std::size_t room_for);
  void drop_oldest();

  std::mutex mutex_;
  std::deque<Transfer> transfers_;  // in the order of the queue
  std::size_t bytes_ = 0;
};

// The uploads of a queue.
std::shared_ptr<UploadQueue> uploads_of(const Queue& queue);

}  // namespace netcl
