// Arguments for measuring: what the kernel may write is replaced by copies that are restored before
// every run, so that the caller's memory never changes and every run does the same work.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "kernel/program_cache.h"
#include "netcl/memory.h"

namespace netcl::tune {

// What the kernel wrote, in the order of its parameters. Of large memory evenly spaced pieces.
using Outputs = std::vector<std::vector<std::byte>>;

class ScratchArgs {
 public:
  // Of real arguments. Waits for the work on them that other queues still have.
  ScratchArgs(const Queue& queue, const detail::KernelState& kernel,
              std::span<const KernelArg> args);

  // Invented from the kernel's signature. Memory has one element per work-item, 1 MiB at least:
  // varying numbers in floating memory, zeros elsewhere because those may be indices. Integers are
  // the global sizes in their order, after those the smallest of them in a range of two
  // dimensions, then 1, so that rows times columns stay inside. Floating numbers are 1, local
  // memory has room for an element per item of the largest work-group. A kernel that indexes
  // otherwise needs real arguments; structs are an ArgumentError.
  ScratchArgs(const Queue& queue, const detail::KernelState& kernel, const WorkSize& global);

  ScratchArgs(const ScratchArgs&) = delete;
  ScratchArgs& operator=(const ScratchArgs&) = delete;

  std::span<const KernelArg> args() const { return args_; }
  // The largest work-group for which the caller's local memory has an element per item.
  std::size_t max_items() const { return max_items_; }

  bool has_outputs() const;
  void restore() const;  // enqueues the copies
  Outputs read() const;  // waits
  bool same(const Outputs& expected, const Outputs& actual) const;

 private:
  struct Copy {
    BufferHandle lease;
    Buffer origin;
    std::size_t origin_offset, bytes;
    std::optional<DType> type;
    bool is_output;
  };

  void add_copy(const detail::KernelState& kernel, std::size_t index, const KernelArg& arg);
  void add_memory(const KernelParameterInfo& parameter, const WorkSize& global);
  std::size_t next_integer(const WorkSize& global);
  KernelArg invented_value(const detail::KernelState& kernel, std::size_t index,
                           const WorkSize& global);
  const Copy* find_copy(const KernelArg& arg) const;
  void limit_items(std::size_t local_bytes, const std::string& type);

  const Queue& queue_;
  std::vector<Copy> copies_;
  std::vector<KernelArg> args_;
  std::vector<std::vector<std::byte>> values_;  // of vector parameters, which are passed by address
  std::size_t max_items_ = static_cast<std::size_t>(-1);
  unsigned integers_ = 0;
};

}  // namespace netcl::tune
