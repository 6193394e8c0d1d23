// Counter-based random numbers on the host: the definition that the kernels must match bit by bit.
#pragma once

#include <array>
#include <cstdint>

#include "netcl/dtype.h"
#include "netcl/tensor.h"

namespace netcl {

// Philox 4x32 with 10 rounds.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// Elements 0 ... count-1 of the stream of `seed`.
void host_random(void* to, std::int64_t count, DType dtype, std::uint64_t seed,
                 Distribution distribution);

}  // namespace netcl
