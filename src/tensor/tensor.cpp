// Making tensors, and moving their values.
#include "netcl/tensor.h"

#include <cmath>

#include "base/check.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/recording.h"
#include "tensor/access.h"
#include "tensor/convert.h"
#include "tensor/following.h"

namespace netcl {

Tensor::Tensor(std::shared_ptr<detail::Storage> storage, Queue queue, Shape shape, Strides strides,
               std::int64_t offset, DType dtype)
    : storage_(std::move(storage)),
      queue_(std::move(queue)),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      offset_(offset),
      dtype_(dtype) {}

void Tensor::require(const char* op) const {
  process::require(op);
  check<ArgumentError>(storage_ != nullptr, "[{}] the tensor must not be empty (default-made)", op);
}

// ---- making

Tensor Tensor::from_host(const HostView& values, TransferOptions options) {
  return from_host(get_active_device().queue, values, options);
}

Tensor Tensor::from_host(const Queue& queue, const HostView& values, TransferOptions options) {
  process::require("from_host");
  return with_backend(queue, [&](DeviceBackend& backend) {
    return TensorAccess::make(backend.from_host(values, values.dtype, options), queue, values.shape,
                              values.dtype);
  });
}

Tensor Tensor::from_shape(const Queue& queue, const Shape& shape, DType dtype) {
  process::require("from_shape");
  return with_backend(queue, [&](DeviceBackend& backend) {
    return TensorAccess::make(backend.from_shape(shape, dtype), queue, shape, dtype);
  });
}

Tensor Tensor::from_shape(const Shape& shape, DType dtype) {
  return from_shape(get_active_device().queue, shape, dtype);
}

Tensor Tensor::empty(const Queue& queue, const Shape& shape, DType dtype) {
  process::require("empty");
  const auto bytes = checked_multiply(shape.numel(), static_cast<std::int64_t>(size_of(dtype)),
                                      "the number of bytes");
  return with_backend(queue, [&](DeviceBackend& backend) {
    return TensorAccess::make(backend.allocate(static_cast<std::size_t>(bytes)), queue, shape,
                              dtype);
  });
}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  return empty(get_active_device().queue, shape, dtype);
}

Tensor Tensor::full(const Queue& queue, const Shape& shape, double value, DType dtype) {
  auto tensor = empty(queue, shape, dtype);
  if (tensor.numel() == 0) return tensor;
  visit_dtype(dtype, [&]<class T>(T) {
    const T element = convert_element<T>(value);
    with_backend(queue, [&](DeviceBackend& backend) {
      backend.fill(tensor.storage_, 0, tensor.nbytes(), &element, sizeof element);
    });
  });
  return tensor;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  return full(get_active_device().queue, shape, value, dtype);
}

Tensor Tensor::arange(const Queue& queue, double start, double stop, double step, DType dtype) {
  check<ArgumentError>(
      step != 0 && std::isfinite(start) && std::isfinite(stop) && std::isfinite(step),
      "[arange] start, stop and step must be finite and the step not 0: {}, {}, {}", start, stop,
      step);
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  check<ShapeError>(count < 0x1p62, "[arange] the number of elements must fit in 63 bits: {}",
                    count);
  HostArray values(Shape{static_cast<std::int64_t>(count)}, dtype);
  visit_dtype(dtype, [&]<class T>(T) {
    auto out = values.values<T>();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = convert_element<T>(start + static_cast<double>(i) * step);
  });
  return from_host(queue, values);
}

Tensor Tensor::arange(double start, double stop, double step, DType dtype) {
  return arange(get_active_device().queue, start, stop, step, dtype);
}

Tensor Tensor::random(const Queue& queue, const Shape& shape, std::uint64_t seed,
                      Distribution distribution, DType dtype) {
  check<DtypeError>(is_floating(dtype), "[random] the dtype must be a floating one: {}",
                    name_of(dtype));
  auto tensor = empty(queue, shape, dtype);
  with_backend(queue, [&](DeviceBackend& backend) {
    backend.random(tensor.storage_, tensor.numel(), dtype, seed, distribution);
  });
  return tensor;
}

Tensor Tensor::random(const Shape& shape, std::uint64_t seed, Distribution distribution,
                      DType dtype) {
  return random(get_active_device().queue, shape, seed, distribution, dtype);
}

Tensor Tensor::adopt_host(const Queue& queue, void* memory, const Shape& shape, DType dtype) {
  process::require("adopt_host");
  auto storage = std::make_shared<detail::Storage>();
  storage->may_change_unseen = true;
  storage->bytes = static_cast<std::size_t>(checked_multiply(
      shape.numel(), static_cast<std::int64_t>(size_of(dtype)), "the number of bytes"));
  check<ArgumentError>(memory != nullptr && storage->bytes > 0,
                       "[adopt_host] the memory must not be empty: shape {}", shape.to_string());
  if (queue.is_cpu())
    storage->adopted_host = memory;
  else
    storage->adopted = create_zero_copy_buffer(queue, memory, storage->bytes);
  return TensorAccess::make(std::move(storage), queue, shape, dtype);
}

// ---- to and from the host

AsyncHostArray Tensor::to_host_async() const {
  require("to_host");
  const auto dense = contiguous();
  HostArray array(shape_, dtype_);
  if (numel() == 0) return {std::move(array), Event()};
  const auto start = static_cast<std::size_t>(dense.offset_) * size_of(dtype_);
  auto done = with_backend(queue_, [&](DeviceBackend& backend) {
    return backend.download(dense.storage_, start, nbytes(), array.data(), false);
  });
  return {std::move(array), std::move(done)};
}

HostArray Tensor::to_host() const { return to_host_async().wait(); }

double Tensor::item() const {
  const cl::ReaderName name("item()");
  check<ShapeError>(numel() == 1, "[item] the tensor must have one element: shape {}",
                    shape_.to_string());
  return to_host().at(0);
}

void Tensor::wait() const {
  require("wait");
  queue_.finish();
}

const Tensor& Tensor::write(const HostView& values) const {
  require("write");
  check<ShapeError>(values.shape == shape_, "[write] the shape must be the tensor's {}: {}",
                    shape_.to_string(), values.shape.to_string());
  return copy_from(from_host(queue_, values));
}

// ---- copies

const Tensor& Tensor::copy_from(const Tensor& other) const {
  require("copy_from");
  other.require("copy_from");
  check<ShapeError>(other.shape_ == shape_, "[copy_from] the shape must be the tensor's {}: {}",
                    shape_.to_string(), other.shape_.to_string());
  before_write("copy_from", *this, {&other, 1});
  // Overlapping sides would read what was just written: go through a copy.
  const auto source = other.storage_ == storage_ ? other.clone() : other.to(queue_);
  with_backend(queue_, [&](DeviceBackend& backend) {
    backend.copy(shape_, TensorAccess::view(*this), TensorAccess::view(source));
  });
  return *this;
}

Tensor Tensor::clone() const {
  require("clone");
  auto copy = empty(queue_, shape_, dtype_);
  with_backend(queue_, [&](DeviceBackend& backend) {
    backend.copy(shape_, TensorAccess::view(copy), TensorAccess::view(*this));
  });
  return derived(*this, std::move(copy), Derivation::copy);
}

Tensor Tensor::contiguous() const {
  require("contiguous");
  return is_contiguous() ? *this : clone();
}

Tensor Tensor::astype(DType dtype) const {
  require("astype");
  if (dtype == dtype_) return *this;
  if (t_following.cast != nullptr) return t_following.cast(*this, dtype);
  auto converted = empty(queue_, shape_, dtype);
  with_backend(queue_, [&](DeviceBackend& backend) {
    backend.copy(shape_, TensorAccess::view(converted), TensorAccess::view(*this));
  });
  return derived(*this, std::move(converted), Derivation::copy);
}

Tensor Tensor::to(const Queue& queue) const {
  require("to");
  check<ArgumentError>(static_cast<bool>(queue), "[to] the queue must not be empty");
  if (queue == queue_) return *this;
  return derived(*this, from_host(queue, to_host()), Derivation::copy);
}

Tensor Tensor::to(const DeviceHandle& device) const { return to(device.queue); }

Tensor Tensor::to(std::string_view selector) const {
  return to(manager().default_device(selector));
}

// ---- memory

const Buffer& Tensor::buffer() const {
  require("buffer");
  storage_->may_change_unseen = true;  // by whoever is given its memory
  return storage_->buffer();
}

void* Tensor::host_data() const {
  require("host_data");
  auto* host = storage_->host();
  return host == nullptr || !queue_.is_cpu()
             ? nullptr
             : host + offset_ * static_cast<std::int64_t>(size_of(dtype_));
}

Tensor::operator KernelArg() const {
  require("kernel argument");
  if (t_following.before_write != nullptr) t_following.before_write(*this);  // it may be written
  if (!is_contiguous())  // not check(): every launch would build the text of the shape
    fail<ArgumentError>(
        "[kernel argument] a tensor given to a kernel must be contiguous: shape {} with a stride "
        "that skips elements (use contiguous())",
        shape_.to_string());
  return KernelArg::memory(storage_->buffer(), static_cast<std::size_t>(offset_) * size_of(dtype_),
                           std::max<std::size_t>(nbytes(), 1), dtype_, queue_,
                           detail::changes_of(storage_));
}

}  // namespace netcl
