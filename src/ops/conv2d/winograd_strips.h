// The products of Winograd's convolution with few tiles, whose filters lie in blocks
// (winograd_strips.cl).
#pragma once

#include "ops/panels.h"

namespace netcl::conv {

inline constexpr std::int64_t kMostStripVectors = 4;

// As many rows as fit the registers, of which the rule's tile tells, and divide a block of `vec`
// filters. Nothing where `tiles` are too many: filters are then used often enough to be packed.
std::optional<PanelTile> strip_tile(std::int64_t tiles, std::int64_t vec,
                                    const KernelConfig& config);

struct StripProduct {
  std::int64_t places, filters, channels, pitch;  // pitch: elements of a row of v and of m
  std::int64_t v_step, m_step;                    // to the next place

  std::int64_t strips(const PanelTile& tile) const;
  // m = u v; u in blocks of filters.
  void enqueue(const Queue& queue, const Tensor& u, const Tensor& v, const Tensor& m,
               const PanelTile& tile) const;
};

}  // namespace netcl::conv
