// What the other files of the tensor layer, and the ops above it, may see of a Tensor.
#pragma once

#include "netcl/backend.h"

namespace netcl {

struct TensorAccess {
  static Tensor make(DeviceArray array, const Queue& queue, const Shape& shape, DType dtype) {
    return Tensor(std::move(array), queue, shape, contiguous_strides(shape), 0, dtype);
  }
  static StridedView view(const Tensor& tensor) {
    return {tensor.storage_, tensor.dtype_, tensor.offset_, tensor.strides_};
  }
  static const DeviceArray& storage(const Tensor& tensor) { return tensor.storage_; }
  // For commands that do not write it, or are counted: unlike with Tensor::buffer(), nobody else
  // gets it.
  static const Buffer& buffer(const Tensor& tensor) {
    tensor.require("buffer");
    return tensor.storage_->buffer();
  }
  static const std::shared_ptr<detail::GradState>& grad_state(const Tensor& tensor) {
    return tensor.grad_state_;
  }
  static void set_grad_state(Tensor& tensor, std::shared_ptr<detail::GradState> state) {
    tensor.grad_state_ = std::move(state);
  }
};

// Calls `f` with the backend of a queue.
template <class F>
decltype(auto) with_backend(const Queue& queue, F&& f) {
  if (queue.is_cpu()) {
    CPUBackend backend(queue);
    return f(static_cast<DeviceBackend&>(backend));
  }
  OpenCLBackend backend(queue);
  return f(static_cast<DeviceBackend&>(backend));
}

}  // namespace netcl
