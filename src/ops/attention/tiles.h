// Attention on CPUs: tiles of queries and keys in registers (tiles.cl), and what they are not for.
#pragma once

#include <string>

#include "ops/attention/plan.h"
#include "ops/panels.h"

namespace netcl {

OpVariant attention_few();  // of queries, which share too little for tiles (few.cl)
OpVariant attention_tiles();
OpVariant attention_backward_tiles();

// ---- what they share

inline std::int64_t up_to(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

// The tile for products with so many columns.
PanelTile attention_tile(std::int64_t columns, DType dtype, const ExtendedDeviceProfile& profile);
// Elements of local memory.
std::int64_t attention_room(DType acc, const ExtendedDeviceProfile& profile);
// Elements between rows of n which are a left factor.
std::int64_t attention_pitch(std::int64_t n, const PanelTile& tile, DType acc);

// What kernels are compiled for, beside the tile, and their defines.
std::int64_t attention_code(const AttentionPlan& plan, DType dtype);
std::string attention_prologue(const AttentionPlan& plan, const PanelTile& tile,
                               std::int64_t score_pitch, DType dtype,
                               const ExtendedDeviceProfile& profile);

}  // namespace netcl
