// Looking for NaN and infinity.
#pragma once

#include "autograd/record.h"

namespace netcl::detail {

// AnomalyError when an output is not finite though the inputs are; notes the caller otherwise.
void examine_results(Record& record, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& outputs);
// AnomalyError when a gradient is not finite though those that came are.
void examine_gradients(const Record& record, const std::vector<Tensor>& arrived,
                       const std::vector<Tensor>& results);

}  // namespace netcl::detail
