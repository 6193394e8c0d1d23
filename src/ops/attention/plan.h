// Attention as its kernels see it: sizes, one batch axis, and a mask that may repeat.
#pragma once

#include "ops/kernels.h"
#include "ops/op.h"

namespace netcl {

struct AttentionPlan {
  std::int64_t batches = 1, L = 0, S = 0, E = 0, F = 0;
  double scale = 1;
  bool causal = false;
  // Empty without a mask. Strides: outer and inner batch axis, L, S.
  Tensor mask;
  std::int64_t inner = 1;
  std::int64_t mask_strides[4] = {};

  int mask_kind() const { return !mask ? 0 : mask.dtype() == DType::boolean ? 1 : 2; }
  Long8 sizes() const { return {{L, S, E, F}}; }
  Long8 strides() const {
    return {{mask_strides[0], mask_strides[1], mask_strides[2], mask_strides[3]}};
  }
};

// Validates q, k, v and the mask (inputs 0 to 3).
void check_attention(const OpSpec& spec);
AttentionPlan plan_attention(const OpCall& call);

}  // namespace netcl
