// The tile sizes of gemm_tile.cl: their search space and how a launch takes them.
#pragma once

#include "ops/conv2d/launch.h"

namespace netcl::conv {

struct GemmTiles {
  std::int64_t M, N, K, per_item;

  explicit GemmTiles(const VariantRun& with)
      : M(with["TILE_M"]), N(with["TILE_N"]), K(with["TILE_K"]), per_item(with["WPT"]) {}
  std::string defines() const;
  std::int64_t bits() const { return ((M * 1024 + N) * 1024 + K) * 1024 + per_item; }
  // For a matrix of rows x columns and a number of them.
  WorkSize global(std::int64_t rows, std::int64_t columns, std::int64_t matrices) const;
  WorkSize local() const { return {N / per_item, M / per_item, 1}; }
};

// For products of (rows, terms) x (terms, columns).
VariantSpace gemm_space(const ExtendedDeviceProfile& profile, const KernelConfig& config,
                        DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t terms);
VariantSpace forward_gemm_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                                const KernelConfig& config);

// Columns behind the last whole panel that packed.cl does not make a panel of: they are few.
std::int64_t thin_columns(std::int64_t columns, std::int64_t width, std::int64_t vec);

// Of the shapes MR x NV that fill the registers as well as the rule's, the one that computes the
// fewest results that nobody wants, of filters as of pixels.
void choose_shape(Parameters& shape, const KernelConfig& config, std::int64_t filters,
                  std::int64_t pixels);

OpVariant taps_variant();
// Of products of filters and pixels in panels' tiles: conv2d.packed, im2col and taps.
VariantSpace packed_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                          const KernelConfig& config);

OpVariant tiled_local_variant();
OpVariant winograd_variant();
OpVariant winograd_panels_variant();
OpVariant winograd_batched_variant();
OpVariant winograd_strips_variant();
OpVariant packed_variant();
OpVariant im2col_variant();

}  // namespace netcl::conv
