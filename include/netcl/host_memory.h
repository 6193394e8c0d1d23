// Tensors over memory that belongs to another library.
#pragma once

#include <memory>

#include "netcl/tensor.h"

namespace netcl {

// As Tensor::adopt_host, with something that keeps the memory alive: `owner` is dropped, on
// whatever thread that happens, when the last tensor over the memory is gone and the work on it is
// done.
Tensor adopt_host(const Queue& queue, void* memory, const Shape& shape, DType dtype,
                  std::shared_ptr<void> owner);

}  // namespace netcl
