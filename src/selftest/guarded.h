// Tensors inside larger memory: a kernel that reads or writes beside its tensor is found out.
#pragma once

#include "ops/op.h"

namespace netcl::selftest_detail {

enum class Layout { dense, views };

// A tensor with the values of `array`, in memory that holds NaN (or the largest integer) around it;
// as a view with gaps and reversed axes when asked for.
struct GuardedTensor {
  Tensor memory;  // flat, all of it
  Tensor tensor;
  HostArray before;

  // Empty, or what was changed in the memory although it belongs to no element of the tensor.
  std::string damage(bool may_write_elements) const;
};

GuardedTensor make_input(const Queue& queue, const RefArray& array, Layout layout);
GuardedTensor make_output(const Queue& queue, const Shape& shape, DType dtype, Layout layout);

}  // namespace netcl::selftest_detail
