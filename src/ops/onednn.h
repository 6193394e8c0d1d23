// oneDNN for the CPU backend, opened at run time: without it everything still works, on loops of
// our own. Knows nothing of tensors.
#pragma once

#include <compare>
#include <cstdint>

namespace netcl::onednn {

bool is_available();

// A function of the library, null when there is none.
void* symbol(const char* name);
// 2 or 3; 0 without the library.
int major_version();

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

// x (N, C, H, W), w (K, C / groups, R, S), y (N, K, P, Q), all contiguous.
struct Convolution {
  enum class Pass { forward, data, weights } pass = Pass::forward;
  std::int64_t N, C, H, W, K, R, S, P, Q;
  std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
  auto operator<=>(const Convolution&) const = default;
};

// forward: y from x and w. data: dx from dy and w. weights: dw from x and dy. False, with nothing
// done, when the library is missing or cannot do it.
bool convolve(const Convolution& convolution, const float* first, const float* second,
              float* result);

}  // namespace netcl::onednn
