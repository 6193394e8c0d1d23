// The files of this folder, and how they see their tensors.
#pragma once

#include "ops/op.h"
#include "ops/softmax/rows.h"

namespace netcl {

std::vector<OpDef> row_norm_ops();
std::vector<OpDef> batch_norm_ops();

// x as rows that are normalised each by itself; see rows.cl.
struct NormPlan {
  std::int64_t rows = 1, n = 1, groups = 1, span = 1;

  std::int64_t channels() const { return span == 0 ? 0 : groups * (n / span); }
  std::int64_t batch() const { return groups == 0 ? 0 : rows / groups; }
  std::int64_t channel(std::int64_t row, std::int64_t i) const {
    return row % groups * (n / span) + i / span;
  }
};

// x (outer, channels, span).
struct BatchPlan {
  std::int64_t outer = 1, channels = 1, span = 1;
  std::int64_t count() const { return outer * span; }  // per channel
  std::int64_t at(std::int64_t channel, std::int64_t i) const {
    return (i / span * channels + channel) * span + i % span;
  }
};

}  // namespace netcl
