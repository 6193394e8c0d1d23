// oneDNN for the CPU backend, opened at run time: without it everything still works, on loops of
// our own. Knows nothing of tensors.
#pragma once

#include <cstdint>

namespace netcl::onednn {

bool is_available();

// A factor as BLAS sees it: `transposed` when its columns lie contiguously, `stride` between rows
// (columns of a transposed one).
struct Factor {
  const float* data;
  bool transposed;
  std::int64_t stride;
};

// c (M x N, rows `stride_c` apart) = a b. False when there is no library.
bool sgemm(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
           float* c, std::int64_t stride_c);

}  // namespace netcl::onednn
