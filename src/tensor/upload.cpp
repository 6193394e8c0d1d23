// Staging memory is taken back when a later upload finds its transfer complete.
#include "tensor/upload.h"

#include <cstring>

#include "base/env.h"
#include "cl/cl.h"
#include "cl/in_flight.h"
#include "cl/state.h"
#include "netcl/error.h"

namespace netcl {

void UploadQueue::retire(std::size_t room_for) {
  const auto megabytes = std::max<std::int64_t>(env::integer("NETCL_PINNED_STAGING_MB"), 0);
  const auto bound = static_cast<std::size_t>(megabytes) << 20;
  while (!transfers_.empty()) {
    const auto done = transfers_.front().done;
    const bool waits = bytes_ + room_for > bound;  // too much in flight: the host waits
    try {
      if (!waits && !done.is_complete()) return;
      done.wait();
    } catch (const Interrupted&) {
      throw;  // the transfer goes on and still needs its memory
    } catch (...) {
      const auto oldest = std::make_shared<Transfer>(std::move(transfers_.front()));
      drop_oldest();
      cl::keep_until_ended(oldest->done, oldest);
      throw;
    }
    drop_oldest();
  }
}

void UploadQueue::drop_oldest() {
  bytes_ -= transfers_.front().bytes;  // also after its memory was moved elsewhere
  transfers_.pop_front();
}

void UploadQueue::upload(const Queue& queue, const Buffer& to, std::size_t offset, const void* from,
                         std::size_t bytes, bool pinned) {
  const std::lock_guard lock(mutex_);
  retire(bytes);
  Transfer transfer;
  transfer.bytes = bytes;
  void* staging = nullptr;
  if (pinned) {
    transfer.pinned = get_pinned_pool(queue)->allocate(bytes);
    staging = transfer.pinned.host();
  } else {
    transfer.heap = std::make_unique<std::byte[]>(bytes);
    staging = transfer.heap.get();
  }
  std::memcpy(staging, from, bytes);
  cl::write(queue.get(), to, offset, bytes, staging, false, &transfer.done);
  bytes_ += bytes;
  transfers_.push_back(std::move(transfer));
  cl::flush(queue.get());  // last: when it fails the transfer is under way all the same
}

std::shared_ptr<UploadQueue> uploads_of(const Queue& queue) {
  return queue.state().attachments.get<UploadQueue>([] { return new UploadQueue(); });
}

}  // namespace netcl
