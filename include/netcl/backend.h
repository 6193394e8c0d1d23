// The two transports behind Tensor, usable on their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "netcl/memory.h"
#include "netcl/tensor.h"

namespace netcl {

namespace detail {

class WeightForms;

// Computes the memory of storages when somebody looks at it (netcl/jit.h).
class Deferred {
 public:
  virtual ~Deferred() = default;
  // Afterwards the storage has its memory and is no longer deferred. Any thread may call it.
  virtual void compute() = 0;
};

// The memory of one or more tensors: a lease of a pool, or memory of the caller. It may come later:
// whoever asks for it makes it be computed.
struct Storage {
  BufferHandle lease;
  Buffer adopted;  // over memory of the caller
  void* adopted_host = nullptr;
  std::size_t bytes = 0;
  std::atomic<std::uint64_t> version{0};  // counts the changes in place
  std::atomic<std::int64_t> kept{0};      // how many of its owners are graphs, not tensors of users
  std::atomic<bool> is_deferred{false};
  // Its elements may change without being counted: memory of the caller, memory whose buffer was
  // given out, memory that a replay writes.
  std::atomic<bool> may_change_unseen{false};
  std::shared_ptr<WeightForms> forms;  // what is kept of it (ops/weight_forms.h)

  const Buffer& buffer() const {
    settle();
    return lease ? lease.buffer() : adopted;
  }
  std::byte* host() const {
    settle();
    return static_cast<std::byte*>(lease ? lease.host() : adopted_host);
  }
  void settle() const {
    if (is_deferred.load(std::memory_order_acquire)) compute();
  }

  void defer(std::shared_ptr<Deferred> source);
  std::shared_ptr<Deferred> source() const;  // null when the memory is there
  void arrived();                            // the memory is there now

 private:
  void compute() const;
  std::shared_ptr<Deferred> deferred_;
};

// The count of changes in place, as a part of the storage that keeps it alive.
inline std::shared_ptr<std::atomic<std::uint64_t>> changes_of(
    const std::shared_ptr<Storage>& storage) {
  return {storage, &storage->version};
}

}  // namespace detail

using DeviceArray = std::shared_ptr<detail::Storage>;

// One side of a copy: elements of `array` at offset + sum(index * stride).
struct StridedView {
  DeviceArray array;
  DType dtype = DType::float32;
  std::int64_t offset = 0;
  Strides strides;
};

class DeviceBackend {
 public:
  explicit DeviceBackend(Queue queue) : queue_(std::move(queue)) {}
  virtual ~DeviceBackend() = default;
  virtual std::string_view name() const = 0;  // "cl" or "cpu"
  bool is_opencl() const { return name() == "cl"; }

  // ---- whole arrays. The caller's memory is free to go when from_host returns.
  DeviceArray from_host(const HostView& values, DType dtype, TransferOptions options = {});
  DeviceArray from_shape(const Shape& shape, DType dtype);  // zeros
  HostArray to_host(const DeviceArray& array, const Shape& shape, DType dtype);
  AsyncHostArray to_host_async(const DeviceArray& array, const Shape& shape, DType dtype);
  // The same memory under another shape; ShapeError when the numbers of elements differ.
  DeviceArray reshape(const DeviceArray& array, const Shape& from, const Shape& to) const;
  void wait() { queue_.finish(); }

  // ---- what they are made of; offsets and sizes in bytes
  DeviceArray allocate(std::size_t bytes);
  virtual void upload(const DeviceArray& to, std::size_t offset, const void* from,
                      std::size_t bytes, TransferOptions options) = 0;
  // The event is empty when the values are already there.
  virtual Event download(const DeviceArray& from, std::size_t offset, std::size_t bytes, void* to,
                         bool blocking) = 0;
  virtual void fill(const DeviceArray& array, std::size_t offset, std::size_t bytes,
                    const void* pattern, std::size_t pattern_bytes) = 0;
  // Element by element over `shape`, with conversion; the sides must not overlap.
  virtual void copy(const Shape& shape, const StridedView& to, const StridedView& from) = 0;
  // Elements 0 ... count-1 of the stream of `seed`.
  virtual void random(const DeviceArray& to, std::int64_t count, DType dtype, std::uint64_t seed,
                      Distribution distribution) = 0;

 protected:
  Queue queue_;
};

class OpenCLBackend final : public DeviceBackend {
 public:
  explicit OpenCLBackend(const Queue& queue);  // DeviceError for a CPU queue
  std::string_view name() const override { return "cl"; }
  void upload(const DeviceArray& to, std::size_t offset, const void* from, std::size_t bytes,
              TransferOptions options) override;
  Event download(const DeviceArray& from, std::size_t offset, std::size_t bytes, void* to,
                 bool blocking) override;
  void fill(const DeviceArray& array, std::size_t offset, std::size_t bytes, const void* pattern,
            std::size_t pattern_bytes) override;
  void copy(const Shape& shape, const StridedView& to, const StridedView& from) override;
  void random(const DeviceArray& to, std::int64_t count, DType dtype, std::uint64_t seed,
              Distribution distribution) override;
};

class CPUBackend final : public DeviceBackend {
 public:
  CPUBackend();  // on the process's CPU queue
  explicit CPUBackend(const Queue& queue);
  std::string_view name() const override { return "cpu"; }
  void upload(const DeviceArray& to, std::size_t offset, const void* from, std::size_t bytes,
              TransferOptions options) override;
  Event download(const DeviceArray& from, std::size_t offset, std::size_t bytes, void* to,
                 bool blocking) override;
  void fill(const DeviceArray& array, std::size_t offset, std::size_t bytes, const void* pattern,
            std::size_t pattern_bytes) override;
  void copy(const Shape& shape, const StridedView& to, const StridedView& from) override;
  void random(const DeviceArray& to, std::int64_t count, DType dtype, std::uint64_t seed,
              Distribution distribution) override;
};

}  // namespace netcl
