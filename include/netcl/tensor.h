// An n-dimensional array on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/device.h"
#include "netcl/dtype.h"
#include "netcl/kernel.h"
#include "netcl/memory.h"
#include "netcl/shape.h"

namespace netcl {

// Memory of the caller, described. Strides are in elements; without them it is contiguous.
struct HostView {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::float32;
  Strides strides;

  HostView(const void* memory, Shape sizes, DType type, Strides steps = {})
      : data(memory), shape(std::move(sizes)), dtype(type), strides(std::move(steps)) {}
  template <class T>
  HostView(std::span<const T> values)  // NOLINT: a span is a view
      : HostView(values.data(), Shape{static_cast<std::int64_t>(values.size())}, dtype_v<T>) {}
  template <class T>
  requires(!std::is_same_v<T, bool>)          // vector<bool> has no memory to view
      HostView(const std::vector<T>& values)  // NOLINT: a vector is one-dimensional data
      : HostView(std::span<const T>(values)) {}
  template <class T>
  HostView(const std::vector<T>& values, Shape sizes);  // checks the number of elements
};

// Values of a tensor in host memory. Copies share the memory.
class HostArray {
 public:
  HostArray() = default;
  HostArray(Shape shape, DType dtype);  // uninitialised

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }

  // The values as T, which must be the dtype's type.
  template <class T>
  std::span<T> values() {
    require(dtype_v<T>);
    return {static_cast<T*>(data()), static_cast<std::size_t>(numel())};
  }
  template <class T>
  std::span<const T> values() const {
    require(dtype_v<T>);
    return {static_cast<const T*>(data()), static_cast<std::size_t>(numel())};
  }
  double at(std::int64_t index) const;                            // of the flat array, converted
  operator HostView() const { return {data(), shape_, dtype_}; }  // NOLINT

 private:
  void require(DType dtype) const;
  Shape shape_;
  DType dtype_ = DType::float32;
  std::shared_ptr<std::byte[]> memory_;
};

// A download under way. The array's memory belongs to it and is complete after wait().
class AsyncHostArray {
 public:
  AsyncHostArray(HostArray array, Event done) : array_(std::move(array)), done_(std::move(done)) {}
  ~AsyncHostArray();  // does not wait: memory that the device still writes is freed afterwards
  AsyncHostArray(AsyncHostArray&&) = default;
  AsyncHostArray& operator=(AsyncHostArray&& other) noexcept;
  const HostArray& wait();
  const Event& event() const { return done_; }

 private:
  void settle() noexcept;
  HostArray array_;
  Event done_;
};

struct TransferOptions {
  bool async_copy;
  bool use_pinned;
  TransferOptions();  // NETCL_ASYNC_H2D, NETCL_PINNED_H2D
  TransferOptions(bool async, bool pinned) : async_copy(async), use_pinned(pinned) {}
};

enum class Distribution { uniform, normal };  // [0, 1); mean 0, variance 1

namespace detail {
struct Storage;
struct GradState;
}  // namespace detail

class Tensor {
 public:
  Tensor() = default;  // empty: no device, no elements; every use of it is an error

  // ---- making tensors. Without a queue the thread's active device is taken.
  static Tensor from_host(const HostView& values, TransferOptions options = {});
  static Tensor from_host(const Queue& queue, const HostView& values, TransferOptions options = {});
  static Tensor from_shape(const Queue& queue, const Shape& shape, DType dtype = DType::float32);
  static Tensor from_shape(const Shape& shape, DType dtype = DType::float32);  // zeros
  static Tensor empty(const Queue& queue, const Shape& shape, DType dtype = DType::float32);
  static Tensor empty(const Shape& shape, DType dtype = DType::float32);  // uninitialised
  static Tensor full(const Queue& queue, const Shape& shape, double value,
                     DType dtype = DType::float32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::float32);
  // start, start + step, ... below stop, each computed as start + i * step.
  static Tensor arange(const Queue& queue, double start, double stop, double step = 1,
                       DType dtype = DType::int64);
  static Tensor arange(double start, double stop, double step = 1, DType dtype = DType::int64);
  // Counter-based (Philox 4x32-10): the same seed gives the same bits on every device.
  static Tensor random(const Queue& queue, const Shape& shape, std::uint64_t seed,
                       Distribution distribution = Distribution::uniform,
                       DType dtype = DType::float32);
  static Tensor random(const Shape& shape, std::uint64_t seed,
                       Distribution distribution = Distribution::uniform,
                       DType dtype = DType::float32);
  // A tensor over the caller's memory, which must outlive it and all work on it. Contiguous.
  static Tensor adopt_host(const Queue& queue, void* memory, const Shape& shape, DType dtype);

  // ---- what it is
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }  // in elements
  std::int64_t offset() const { return offset_; }      // of the first element in the storage
  std::int64_t numel() const { return shape_.numel(); }
  std::int64_t size() const { return shape_.numel(); }
  std::int64_t size(std::int64_t axis) const;
  std::int64_t ndim() const { return shape_.rank(); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  const Queue& queue() const { return queue_; }
  Device device() const { return queue_.device(); }
  bool is_contiguous() const { return netcl::is_contiguous(shape_, strides_); }
  bool shares_storage(const Tensor& other) const { return storage_ == other.storage_; }
  explicit operator bool() const { return storage_ != nullptr; }
  std::string to_string() const;  // "Tensor(shape=(2, 3), dtype=float32, device=...)" and values

  // ---- to and from the host
  HostArray to_host() const;
  AsyncHostArray to_host_async() const;
  template <class T>
  std::vector<T> to_vector() const;
  double item() const;  // of a tensor with one element
  void wait() const;    // until all work on the tensor's queue is done
  const Tensor& write(const HostView& values) const;  // in place; equal shapes, dtype converted

  // ---- copies
  Tensor clone() const;
  Tensor contiguous() const;         // itself when it already is
  Tensor astype(DType dtype) const;  // itself when it already is; saturates, NaN to integer is 0
  Tensor to(const DeviceHandle& device) const;
  Tensor to(const Queue& queue) const;  // itself when it already is there
  Tensor to(std::string_view selector) const;
  // In place, through views, dtype converted. Like a pointer, a const Tensor has writable elements.
  const Tensor& copy_from(const Tensor& other) const;

  // ---- views: they share storage
  Tensor reshape(const std::vector<std::int64_t>& sizes) const;  // one -1; copies when it must
  Tensor view(const Shape& shape) const;                         // never copies, else ShapeError
  Tensor permute(const std::vector<std::int64_t>& axes) const;
  Tensor transpose(std::int64_t a = -2, std::int64_t b = -1) const;
  Tensor expand(const Shape& shape) const;  // size-1 axes repeat
  Tensor narrow(std::int64_t axis, std::int64_t start, std::int64_t length) const;
  Tensor select(std::int64_t axis, std::int64_t index) const;  // drops the axis
  // NumPy's slices: negative positions count from the end, out of range is cut, step may be < 0.
  static constexpr std::int64_t kEnd = INT64_MAX;    // "to the end" in the direction of step
  static constexpr std::int64_t kBegin = INT64_MIN;  // "from the beginning" likewise
  Tensor slice(std::int64_t axis, std::int64_t start = kBegin, std::int64_t stop = kEnd,
               std::int64_t step = 1) const;
  Tensor squeeze(std::int64_t axis) const;
  Tensor unsqueeze(std::int64_t axis) const;

  // ---- gradients: see netcl/autograd.h
  // Whether tapes follow it: a leaf that was marked so, or computed from one under a tape.
  bool requires_grad() const { return grad_state_ != nullptr; }
  // Marks a floating leaf (or unmarks it); copies made afterwards share the mark and the gradient.
  Tensor& set_requires_grad(bool on = true);
  Tensor grad() const;  // what backward has added up so far; empty when there is none
  void set_grad(const Tensor& gradient) const;  // an empty one drops it
  Tensor detach() const;                        // the same memory, not followed

  // ---- memory
  // The buffer of the storage (the view starts at offset()); empty on the CPU backend.
  const Buffer& buffer() const;
  // The first element in host memory on the CPU backend; null elsewhere.
  void* host_data() const;
  operator KernelArg() const;  // NOLINT: tensors are arguments; must be contiguous

 private:
  friend struct TensorAccess;
  Tensor(std::shared_ptr<detail::Storage> storage, Queue queue, Shape shape, Strides strides,
         std::int64_t offset, DType dtype);
  Tensor with_view(Shape shape, Strides strides, std::int64_t offset) const;
  void require(const char* op) const;  // not empty, and the process may use it

  std::shared_ptr<detail::Storage> storage_;
  std::shared_ptr<detail::GradState> grad_state_;
  Queue queue_;
  Shape shape_{0};
  Strides strides_{1};
  std::int64_t offset_ = 0;
  DType dtype_ = DType::float32;
};

template <class T>
HostView::HostView(const std::vector<T>& values, Shape sizes)
    : HostView(values.data(), std::move(sizes), dtype_v<T>) {
  if (shape.numel() != static_cast<std::int64_t>(values.size()))
    throw ShapeError("[from_host] the shape must have as many elements as the data: " +
                     shape.to_string() + " for " + std::to_string(values.size()));
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const HostArray array = astype(dtype_v<T>).to_host();
  const std::span<const T> values = array.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace netcl
