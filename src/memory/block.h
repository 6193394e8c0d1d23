// One piece of memory that a pool hands out, and where such pieces come from.
#pragma once

#include <cstddef>
#include <memory>

#include "base/pages.h"
#include "cl/cl.h"
#include "netcl/opencl.h"

namespace netcl::detail {

struct Block {
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  Buffer buffer;               // of the device; empty for the CPU backend
  void* host = nullptr;        // host memory, or where `buffer` is mapped
  Pages pages;                 // what `host` is a part of, if it is large
  Ref<_cl_command_queue> map;  // the queue `buffer` was mapped with, if it was
  std::size_t bytes = 0;
  Block* next_abandoned = nullptr;  // see BufferHandle::release
};

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Null when there is no memory; other failures throw.
  virtual std::unique_ptr<Block> make(std::size_t bytes) = 0;
  // Waits for work that may still hold memory which was already given back.
  virtual void settle() {}
};

std::unique_ptr<BlockSource> host_blocks();
std::unique_ptr<BlockSource> device_blocks(const Context& context, cl::Memory kind);
// Blocks of the device behind `queue`: host-visible where host and device share memory.
std::unique_ptr<BlockSource> queue_blocks(const Queue& queue);
std::unique_ptr<BlockSource> mapped_blocks(const Queue& queue);

}  // namespace netcl::detail
