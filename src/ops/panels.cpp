#include "ops/panels.h"

#include <algorithm>
#include <limits>

#include "base/format.h"

namespace netcl {
namespace {

constexpr std::int64_t kSmallPanels = 64 << 10, kLargePanels = 512 << 10;  // bytes
constexpr std::int64_t kShortestChunk = 8, kLongestChunk = 2048;           // terms
constexpr std::int64_t kMostParts = 64, kManyItems = 64;
constexpr std::int64_t kPanelsTogether = 4;
constexpr double kItemCycles = 1000;  // of starting a work-item
constexpr double kTail = 0.35;        // of a work-item: cores do not run evenly
// What it costs to fetch the rows of a tile, in such tiles: from near, or from memory.
constexpr double kNearRows = 0.1, kFarRows = 0.5;

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of the shapes that fill the registers as well as the rule's, the one that wastes the fewest
// columns of the last panel. With a single vector, every multiplication waits for a load.
std::pair<std::int64_t, std::int64_t> best_shape(std::int64_t columns, std::int64_t vec,
                                                 const KernelConfig& config) {
  const std::int64_t mr = config.tile_m, nv = config.tile_n / config.vector_width;
  std::pair best{mr, nv};
  const auto cost = [&](std::int64_t vectors) {
    return static_cast<double>(ceil_of(columns, vectors * vec) * vectors) *
           (vectors == 1 ? 1.5 : 1.0);
  };
  for (const std::int64_t vectors : {nv + 1, nv - 1})
    if (cost(vectors) < cost(best.second)) best = {mr * nv / vectors, vectors};
  return best;
}

}  // namespace

std::string PanelTile::defines(DType dtype) const {
  return vector_macros(dtype, vec) + define("MR", mr) + define("NV", nv);
}

// A quarter of the core's own cache, where the device tells of one as its local memory: results and
// the other factor pass through it, too. Of the little that other devices give, more.
PanelRoom::PanelRoom(const PanelTile& tile, DType acc, const ExtendedDeviceProfile& profile,
                     std::int64_t elements_between)
    : slack(elements_between) {
  const auto memory = static_cast<std::int64_t>(profile.local_mem_size);
  const auto size = static_cast<std::int64_t>(size_of(acc));
  const auto bytes = std::min(std::max(memory / 4, kSmallPanels), kLargePanels);
  elements = std::max(std::min(bytes, memory / 2) / size, kShortestChunk * tile.width() + slack);
  left_terms = std::max(std::min(kLongestChunk, memory / 4 / size / tile.mr), kShortestChunk);
}

std::string PanelRoom::defines() const {
  return define("PANEL_ELEMENTS", elements) + define("LEFT_TERMS", left_terms);
}

std::int64_t PanelCut::row_parts(const ProductSize& size) const { return ceil_of(size.rows, rows); }

std::int64_t PanelCut::column_blocks(const ProductSize& size, const PanelTile& tile) const {
  return ceil_of(size.columns, panels * tile.width());
}

PanelCut cut_product(const ProductSize& size, const PanelTile& tile, const PanelRoom& room,
                     std::int64_t cores, double pack_tiles) {
  const auto panels = ceil_of(size.columns, tile.width()), tiles = ceil_of(size.rows, tile.mr);
  // Few long chunks rather than many panels side by side: between chunks all sums wait in memory.
  // Only where all panels fit and the left factor is too large to stay near, it is read once.
  const bool once =
      panels <= kPanelsTogether && size.rows * size.terms > kPanelsTogether * room.elements;
  const auto longest = std::max<std::int64_t>(
      std::min(room.left_terms, (room.elements / (once ? panels : 1) - room.slack) / tile.width()),
      1);
  const auto chunks = std::max<std::int64_t>(ceil_of(size.terms, longest), 1);
  const auto terms = std::max<std::int64_t>(ceil_of(size.terms, chunks), 1);
  const auto most = std::min(panels, room.elements / (terms * tile.width() + room.slack));
  // A tile takes as many cycles as it has pairs of accumulators for each term.
  const double tile_cycles = static_cast<double>(tile.mr * tile.nv * size.terms) / 2;
  const auto strip = std::max(room.elements / terms / tile.mr, std::int64_t{1}) * tile.mr;
  PanelCut best{tiles * tile.mr, most, terms, strip};
  double best_cycles = std::numeric_limits<double>::infinity();
  for (auto wide = most; wide > 0; wide = wide > 1 ? (wide + 1) / 2 : 0)
    for (std::int64_t parts = 1; parts <= std::min(tiles, kMostParts); parts += (parts + 3) / 4) {
      const auto tall = ceil_of(tiles, parts);
      const auto items = ceil_of(tiles, tall) * ceil_of(panels, wide) * size.batches;
      const auto across = static_cast<double>(wide), down = static_cast<double>(tall);
      const double item_cycles =
          (across * (down + pack_tiles) + down * (once ? kFarRows : kNearRows)) * tile_cycles +
          kItemCycles;
      const double rounds =
          std::max(static_cast<double>(ceil_of(items, cores)),
                   static_cast<double>(items) / static_cast<double>(cores) + kTail);
      const double cycles = rounds * item_cycles;
      if (cycles < best_cycles) best_cycles = cycles, best = {tall * tile.mr, wide, terms, strip};
      if (items > kManyItems * cores) break;  // finer cuts only cost
    }
  return best;
}

std::int64_t panel_vector(const KernelConfig& config, DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  return std::max<std::int64_t>(config.vector_width * 4 / size, 2);
}

VariantSpace panel_space(const KernelConfig& config, DType dtype, std::int64_t columns,
                         std::vector<std::size_t> sizes) {
  const auto vec = panel_vector(config, dtype);
  VariantSpace space;
  space.tunables = {{"MR", {4, 6, 8, 12}}, {"NV", {1, 2, 3, 4}}, {"VEC", {vec}}};
  const auto [mr, nv] = best_shape(columns, vec, config);
  space.defaults = {{"MR", mr}, {"NV", nv}, {"VEC", vec}};
  // The accumulators and one row of operands have to fit the registers; fewer than eight
  // accumulators cannot hide the latency of the multiplications.
  space.declines = [](const Parameters& p) {
    const auto sums = p.at("MR") * p.at("NV");
    return sums + p.at("NV") + 1 > 32 || sums < 8
               ? fmt::format("{} accumulators are too few or too many", sums)
               : std::string();
  };
  space.sizes = std::move(sizes);
  return space;
}

}  // namespace netcl
