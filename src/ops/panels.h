// What the products of CPU kernels share (panel_tile.cl): the shape of a tile in registers, how
// much a panel holds, and how the work is cut.
#pragma once

#include "ops/dispatch.h"
#include "ops/kernels.h"

namespace netcl {

struct PanelTile {
  std::int64_t mr, nv, vec;  // rows, vectors, and the elements of a vector

  PanelTile(std::int64_t rows, std::int64_t vectors, std::int64_t elements)
      : mr(rows), nv(vectors), vec(elements) {}
  explicit PanelTile(const VariantRun& with) : mr(with["MR"]), nv(with["NV"]), vec(with["VEC"]) {}
  std::int64_t width() const { return nv * vec; }
  std::int64_t bits() const { return (mr * 64 + nv) * 64 + vec; }
  // The terms of a product that a panel holds. Not a matter of the product's size, so that few
  // kernels are built.
  std::int64_t terms(DType acc, const ExtendedDeviceProfile& profile) const;
  std::string defines(DType dtype, std::int64_t terms, bool chunked) const;
};

// Rows of one work-item, whole tiles of them: as many as leave `items` for each core, because the
// fewer they are the more often a panel is made.
std::int64_t panel_rows(std::int64_t rows, std::int64_t panels, const PanelTile& tile,
                        const ExtendedDeviceProfile& profile, std::int64_t items = 8);

// The tiles that fit the registers, for results of so many columns.
VariantSpace panel_space(const KernelConfig& config, DType dtype, std::int64_t columns,
                         std::vector<std::size_t> sizes);

}  // namespace netcl
