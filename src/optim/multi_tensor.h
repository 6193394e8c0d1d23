// The same update of many tensors, in few launches.
#pragma once

#include <array>
#include <vector>

#include "netcl/tensor.h"

namespace netcl::optim {

enum class UpdateRule { sgd = 0, adam = 1, rms_prop = 2, average = 3 };

struct Update {
  Tensor target;         // changed in place; contiguous
  Tensor gradient;       // of its shape and dtype
  Tensor first, second;  // state, of accumulator_dtype; may be empty
};

// float64 for float64, else float32.
DType accumulator_dtype(DType dtype);

// All targets must be on one queue and of one dtype. With `stored`, a tensor of eight numbers in
// the accumulator's dtype on a device, the kernels read those instead.
void update_tensors(UpdateRule rule, const std::array<double, 8>& numbers,
                    const std::vector<Update>& updates, const Tensor& stored = {});

}  // namespace netcl::optim
