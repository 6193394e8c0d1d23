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
  std::string defines(DType dtype) const;
};

// What panels may take of a core's own memory, in elements. Not a matter of the product's size, so
// that few kernels are built.
struct PanelRoom {
  std::int64_t elements;    // of all panels of a work-item
  std::int64_t left_terms;  // of a copied tile of the left factor: also the longest chunk
  std::int64_t slack;       // behind each panel

  PanelRoom(const PanelTile& tile, DType acc, const ExtendedDeviceProfile& profile,
            std::int64_t elements_between = 0);
  std::string defines() const;
};

struct ProductSize {
  std::int64_t rows, columns, terms, batches;
};

// The share of one work-item: rows (whole tiles), panels side by side, and the terms that their
// panels hold at a time. A panel meets the rows strip by strip: as many as stay in the core's
// cache.
struct PanelCut {
  std::int64_t rows, panels, terms, strip;

  std::int64_t row_parts(const ProductSize& size) const;
  std::int64_t column_blocks(const ProductSize& size, const PanelTile& tile) const;
};

// The cut that ends first on the device's cores. `pack_tiles`: what it costs to make a panel, in
// tiles that are multiplied with it in the same time.
PanelCut cut_product(const ProductSize& size, const PanelTile& tile, const PanelRoom& room,
                     std::int64_t cores, double pack_tiles);

// How many rounds of equal work-items the cores need. They do not run evenly: a part of a
// work-item is left at the end.
double rounds_of(std::int64_t items, std::int64_t cores);

// The elements of a vector: the rule thinks in floats; vectors of other elements have the same
// number of bytes.
std::int64_t panel_vector(const KernelConfig& config, DType dtype);

// Another cut, for products whose panels are cheap to make: work-items share the tiles of all rows
// and then of the next panels evenly, wherever that ends. The first one gets `extra` more tiles:
// its core works while the others wake.
struct PanelShares {
  std::int64_t panels, terms, strip;  // as in PanelCut
  std::int64_t items, tiles, extra;   // of a batch; tiles of each
};
PanelShares share_product(const ProductSize& size, const PanelTile& tile, const PanelRoom& room,
                          std::int64_t cores, double pack_tiles, double left_tiles);

// What decides about the shape of tiles.
struct PanelProduct {
  std::int64_t columns;
  std::int64_t rows = 0;       // 0: so many that it does not matter, or of any number
  std::int64_t terms = 0;      // likewise
  std::int64_t left_step = 0;  // bytes between rows of a left factor that is read where it lies
};

// The tiles that fit the registers.
VariantSpace panel_space(const KernelConfig& config, DType dtype, const PanelProduct& product,
                         std::vector<std::size_t> sizes);
inline VariantSpace panel_space(const KernelConfig& config, DType dtype, std::int64_t columns,
                                std::vector<std::size_t> sizes) {
  return panel_space(config, dtype, PanelProduct{columns}, std::move(sizes));
}

}  // namespace netcl
