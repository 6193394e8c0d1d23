// Work sizes and kernel arguments as values.
#include "base/check.h"
#include "netcl/kernel.h"

namespace netcl {

WorkSize::WorkSize(std::initializer_list<std::int64_t> sizes) {
  check<ShapeError>(sizes.size() <= 3, "[WorkSize] at most 3 dimensions are possible: {}",
                    sizes.size());
  for (const auto size : sizes) {
    check<ShapeError>(size >= 0, "[WorkSize] sizes must not be negative: {}", size);
    sizes_[rank_++] = static_cast<std::size_t>(size);
  }
}

WorkSize::WorkSize(const std::vector<std::size_t>& sizes) {
  check<ShapeError>(sizes.size() <= 3, "[WorkSize] at most 3 dimensions are possible: {}",
                    sizes.size());
  for (const auto size : sizes) sizes_[rank_++] = size;
}

std::size_t WorkSize::total() const { return sizes_[0] * sizes_[1] * sizes_[2]; }

std::vector<std::size_t> WorkSize::to_vector() const {
  return {sizes_.begin(), sizes_.begin() + rank_};
}

WorkSize WorkSize::padded(unsigned rank) const {
  WorkSize result = *this;
  if (result.rank_ != 0 && result.rank_ < rank) result.rank_ = rank;
  return result;
}

std::string WorkSize::to_string() const {
  if (rank_ == 0) return "None";
  std::string text = "(";
  for (unsigned i = 0; i < rank_; ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes_[i]);
  return text + (rank_ == 1 ? ",)" : ")");
}

KernelArg::KernelArg(const Buffer& buffer)
    : kind_(Kind::memory), size_(buffer.nbytes()), buffer_(&buffer) {}

KernelArg::KernelArg(const BufferHandle& handle)
    : kind_(Kind::memory), size_(handle.nbytes()), buffer_(&handle.buffer()) {}

KernelArg KernelArg::local(std::size_t bytes) { return KernelArg(Kind::local, bytes); }

KernelArg KernelArg::by_value(const void* value, std::size_t bytes) {
  KernelArg arg(Kind::bytes, bytes);
  arg.value_.pointer = value;
  return arg;
}

KernelArg KernelArg::memory(const Buffer& buffer, std::size_t offset, std::size_t bytes,
                            DType dtype, const Queue& queue,
                            std::shared_ptr<std::atomic<std::uint64_t>> version) {
  KernelArg arg(buffer);
  arg.size_ = bytes;
  arg.offset_ = offset;
  arg.dtype_ = dtype;
  arg.queue_ = &queue;
  arg.version_ = std::move(version);
  return arg;
}

}  // namespace netcl
