// Views and copies that the tensor layer makes, as records.
#pragma once

#include <span>

#include "tensor/following.h"

namespace netcl::detail {

void record_derivation(const Tensor& from, Tensor& to, Derivation how,
                       std::span<const std::int64_t> args);

}  // namespace netcl::detail
