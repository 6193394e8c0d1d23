// Sources of memory: the host's heap, a context, a context with the memory mapped for good.
#include "memory/block.h"

#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "base/process.h"
#include "cl/state.h"
#include "netcl/capabilities.h"
#include "netcl/error.h"

namespace netcl::detail {
namespace {

constexpr std::size_t kHostAlignment = 64;  // a cache line, and the widest vector register

// `make` makes the buffer.
template <class Make>
std::unique_ptr<Block> make_device_block(std::size_t bytes, Make&& make) {
  try {
    auto block = std::make_unique<Block>();
    block->buffer = make();
    block->bytes = bytes;
    return block;
  } catch (const DeviceError& error) {
    if (cl::is_allocation_failure(error.code())) return nullptr;
    throw;
  }
}

std::unique_ptr<Block> make_device_block(_cl_context* context, cl::Memory kind, std::size_t bytes) {
  return make_device_block(bytes, [&] { return cl::create_buffer(context, kind, bytes); });
}

class HostBlocks final : public BlockSource {
 public:
  std::unique_ptr<Block> make(std::size_t bytes) override {
    // The kernel promises more than there is and then kills the process that takes it at its word.
    if (bytes > physical_memory()) return nullptr;
    auto block = std::make_unique<Block>();
    block->host = memory_for(*block, bytes);
    if (block->host == nullptr) return nullptr;
    block->bytes = bytes;
    return block;
  }

 private:
  static void* memory_for(Block& block, std::size_t bytes) {
    if (bytes >= Pages::kHuge) {
      block.pages = Pages(bytes);
      return block.pages.data();
    }
    const auto rounded = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    return std::aligned_alloc(kHostAlignment, rounded);
  }
  static std::size_t physical_memory() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }
};

class DeviceBlocks final : public BlockSource {
 public:
  DeviceBlocks(const Context& context, cl::Memory kind)
      : context_(Ref<_cl_context>::share(context.get())), kind_(kind) {}
  std::unique_ptr<Block> make(std::size_t bytes) override {
    return make_device_block(context_.get(), kind_, bytes);
  }

 private:
  // The bare reference, not a Context: pools hang on the Context and must not keep it alive.
  Ref<_cl_context> context_;
  cl::Memory kind_;
};

class QueueBlocks final : public BlockSource {
 public:
  explicit QueueBlocks(const Queue& queue)
      : context_(Ref<_cl_context>::share(queue.context().get())),
        queue_(Ref<_cl_command_queue>::share(queue.get())),
        kind_(device_profile(queue).is_integrated ? cl::Memory::host_visible : cl::Memory::device),
        is_cpu_(device_profile(queue).is_cpu) {}
  std::unique_ptr<Block> make(std::size_t bytes) override {
    // A CPU works on ordinary memory, whose pages are ours to choose; drivers take small ones.
    if (is_cpu_ && bytes >= Pages::kHuge)
      if (auto pages = Pages(bytes))
        return make_device_block(
            bytes, [&] { return cl::own_host_memory(context_.get(), std::move(pages), bytes); });
    return make_device_block(context_.get(), kind_, bytes);
  }
  void settle() override { cl::finish(queue_.get()); }

 private:
  Ref<_cl_context> context_;
  Ref<_cl_command_queue> queue_;
  cl::Memory kind_;
  bool is_cpu_;
};

class MappedBlocks final : public BlockSource {
 public:
  explicit MappedBlocks(const Queue& queue)
      : context_(Ref<_cl_context>::share(queue.context().get())),
        queue_(Ref<_cl_command_queue>::share(queue.get())) {}
  std::unique_ptr<Block> make(std::size_t bytes) override {
    auto block = make_device_block(context_.get(), cl::Memory::host_visible, bytes);
    if (!block) return nullptr;
    block->host = cl::map(queue_.get(), block->buffer, 0, bytes);
    block->map = queue_;
    return block;
  }

 private:
  Ref<_cl_context> context_;
  Ref<_cl_command_queue> queue_;
};

}  // namespace

Block::~Block() {
  if (!buffer) {
    if (!pages) std::free(host);
    return;
  }
  if (!map || !process::calls_allowed()) return;
  try {
    cl::unmap(map.get(), buffer, host);
  } catch (const std::exception& error) {
    log::warn(error.what());
  }
}

std::unique_ptr<BlockSource> host_blocks() { return std::make_unique<HostBlocks>(); }

std::unique_ptr<BlockSource> device_blocks(const Context& context, cl::Memory kind) {
  return std::make_unique<DeviceBlocks>(context, kind);
}

std::unique_ptr<BlockSource> queue_blocks(const Queue& queue) {
  if (queue.is_cpu()) return host_blocks();
  return std::make_unique<QueueBlocks>(queue);
}

std::unique_ptr<BlockSource> mapped_blocks(const Queue& queue) {
  if (queue.is_cpu()) return host_blocks();
  return std::make_unique<MappedBlocks>(queue);
}

}  // namespace netcl::detail
