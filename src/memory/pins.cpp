#include "memory/pins.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "base/process.h"

namespace netcl::detail {
namespace {

struct Pinned {
  std::size_t pins = 0;
  std::unique_ptr<Block> block;  // set aside, if its lease has ended
  std::shared_ptr<BucketPool> pool;
};

struct Pins {
  std::mutex mutex;
  std::unordered_map<_cl_mem*, Pinned> buffers;
};

std::atomic<std::size_t> g_pinned{0};  // buffers; the usual release of memory sees a 0 here

Pins& pins() {
  static auto* instance = new Pins();
  return *instance;
}

}  // namespace

BufferPin::BufferPin(Buffer buffer) : buffer_(std::move(buffer)) {
  auto& all = pins();
  const std::lock_guard lock(all.mutex);
  ++all.buffers[buffer_.get()].pins;
  g_pinned.store(all.buffers.size());
}

BufferPin::~BufferPin() {
  if (!buffer_ || !process::calls_allowed()) return;
  Pinned freed;
  {
    auto& all = pins();
    const std::lock_guard lock(all.mutex);
    const auto found = all.buffers.find(buffer_.get());
    if (--found->second.pins > 0) return;
    freed = std::move(found->second);
    all.buffers.erase(found);
    g_pinned.store(all.buffers.size());
  }
  if (freed.block) freed.pool->give_back(std::move(freed.block));
}

bool set_aside(std::unique_ptr<Block>& block, const std::shared_ptr<BucketPool>& pool) noexcept {
  if (g_pinned.load() == 0) return false;
  auto& all = pins();
  const std::lock_guard lock(all.mutex);
  const auto found = all.buffers.find(block->buffer.get());
  if (found == all.buffers.end()) return false;
  found->second.block = std::move(block);
  found->second.pool = pool;
  return true;
}

}  // namespace netcl::detail
