// A KernelProblem read as the sizes of its op, for the rules. A size that the problem does not give
// (a shape was left out) makes the reading empty; the rules that need it then decline.
#pragma once

#include <algorithm>
#include <optional>

#include "netcl/kernel_selector.h"

namespace netcl::detail {

struct MatmulSizes {
  std::int64_t M, N, K;
  double operations() const {
    return 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  }
};

struct Conv2dSizes {
  std::int64_t N, C, H, W, K, R, S;
  std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;

  std::int64_t out_h() const { return out(H, R, stride_h, padding_h, dilation_h); }
  std::int64_t out_w() const { return out(W, S, stride_w, padding_w, dilation_w); }
  bool is_filter(std::int64_t r, std::int64_t s) const { return R == r && S == s; }
  bool has_stride(std::int64_t stride) const { return stride_h == stride && stride_w == stride; }
  bool is_dilated() const { return dilation_h != 1 || dilation_w != 1; }

 private:
  static std::int64_t out(std::int64_t size, std::int64_t filter, std::int64_t stride,
                          std::int64_t padding, std::int64_t dilation) {
    const auto span = size + 2 * padding - dilation * (filter - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
  }
};

std::optional<MatmulSizes> matmul_sizes(const KernelProblem& problem);
// ArgumentError on a stride, padding, dilation or group count that cannot be.
std::optional<Conv2dSizes> conv2d_sizes(const KernelProblem& problem);
// Elements of the largest operand.
std::int64_t elements(const KernelProblem& problem);

}  // namespace netcl::detail
