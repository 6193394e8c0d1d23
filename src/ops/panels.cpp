#include "ops/panels.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "base/format.h"

namespace netcl {
namespace {

constexpr std::int64_t kSmallPanels = 64 << 10, kLargePanels = 512 << 10;  // bytes
constexpr std::int64_t kShortestChunk = 8, kLongestChunk = 2048;           // terms
constexpr std::int64_t kMostParts = 64, kManyItems = 64;
constexpr std::int64_t kPanelsTogether = 4;
constexpr std::int64_t kFewestSums = 8;  // that hide the latency of multiplications
constexpr double kItemCycles = 300;      // of starting a work-item
constexpr double kWakeCycles = 30000;    // until a core that slept takes its first work-item
constexpr double kSeveralCycles = 15000, kLateCycles = 6000;  // of commands for several cores
constexpr double kUneven = 0.1;  // of a work-item: cores do not run evenly
// What it costs to fetch the rows of a tile, in such tiles: from near, or from memory.
constexpr double kNearRows = 0.02, kFarRows = 0.5;

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The rows of a tile whose lines share a set of the first cache, which has 64 of them everywhere.
std::int64_t rows_in_a_set(std::int64_t rows, std::int64_t step) {
  constexpr std::int64_t kLine = 64, kSets = 64;
  std::array<std::int64_t, kSets> count{};
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    most = std::max(most, ++count[static_cast<std::size_t>(std::abs(i * step) / kLine % kSets)]);
  return most;
}

// The columns that are computed, wasted ones too. A last panel of up to a vector is narrow.
double computed_columns(std::int64_t columns, std::int64_t nv, std::int64_t vec) {
  constexpr double kOneVector = 1.5;  // every multiplication waits for a load
  const auto rest = columns % (nv * vec);
  const auto last = rest == 0                ? 0.0
                    : rest <= vec || nv == 1 ? kOneVector * static_cast<double>(vec)
                                             : static_cast<double>(nv * vec);
  return (nv == 1 ? kOneVector : 1.0) * static_cast<double>(columns - rest) + last;
}

// What a product costs with such tiles: the rows and columns that it computes.
double shape_cost(const PanelProduct& product, std::int64_t mr, std::int64_t nv, std::int64_t vec) {
  auto cost = computed_columns(product.columns, nv, vec);
  if (product.rows > 0) cost *= static_cast<double>(ceil_of(product.rows, mr) * mr);
  // Rows that drive each other out of the first cache, which keeps 8 lines of a set, or 12.
  const auto crowded = product.left_step != 0 ? rows_in_a_set(mr, product.left_step) : 0;
  cost *= crowded > 9 ? 1.15 : crowded > 6 ? 1.03 : 1.0;
  return cost;
}

// Of the shapes that fill the registers as well as the rule's, the one that wastes the least.
std::pair<std::int64_t, std::int64_t> best_shape(const PanelProduct& product, std::int64_t vec,
                                                 const KernelConfig& config) {
  // Another kernel takes a second to compile, which a small product does not bring back.
  constexpr std::int64_t kSmallResult = 4096, kSmallProduct = 1 << 22;
  const auto products = product.rows * product.columns * product.terms;
  const double worth_another = products > 0 && products < kSmallProduct ? 0.93 : 0.99;
  const std::int64_t mr = config.tile_m, nv = config.tile_n / config.vector_width;
  const std::int64_t registers = mr * nv >= 24 ? 32 : 16;
  std::pair best{mr, nv};
  double best_cost = shape_cost(product, mr, nv, vec) * worth_another;
  const auto look_at = [&](std::int64_t rows, std::int64_t vectors) {
    if (rows * vectors < kFewestSums || (rows + 1) * vectors + 1 > registers) return;
    const double cost = shape_cost(product, rows, vectors, vec);
    if (cost < best_cost) best = {rows, vectors}, best_cost = cost * worth_another;
  };
  for (const std::int64_t vectors : {nv, nv + 1, nv - 1}) {
    if (vectors < 1) continue;
    const auto rows = mr * nv / vectors;
    look_at(rows, vectors);
    if (product.rows * product.columns >= kSmallResult) look_at(rows + 1, vectors);
  }
  return best;
}

// When the last of the cores is done. Drivers hand out work-items in turns, at first many at a
// time, so that either all cores get the same number, those that wake late included, or the last
// ones fill the gaps. `all`: the cycles of all work-items; `largest`: of one.
double end_of(double all, double largest, std::int64_t items, std::int64_t cores) {
  const auto busy = std::min(items, cores);
  if (busy <= 1) return all;
  const auto share = static_cast<double>(busy);
  const double each = static_cast<double>(ceil_of(items, busy)) * largest;
  const double in_turns = (all + (share - 1) * kWakeCycles) / share + largest / 2;
  return std::min(kWakeCycles + each + kUneven * largest, in_turns);
}

// A tile takes as many cycles as it has pairs of accumulators for each term.
double cycles_of_tile(const ProductSize& size, const PanelTile& tile) {
  return static_cast<double>(tile.mr * tile.nv * size.terms) / 2;
}

// The terms that panels hold at a time, how many of them at most, and the rows that stay near.
struct Chunks {
  std::int64_t terms, panels, strip;
  bool once;  // all panels fit, and a left factor too large to stay near is read once
};
Chunks chunks_of(const ProductSize& size, const PanelTile& tile, const PanelRoom& room,
                 bool copies_left) {
  const auto panels = ceil_of(size.columns, tile.width());
  // Few long chunks rather than many panels side by side: between chunks all sums wait in memory.
  // Only where all panels fit and the left factor is too large to stay near, it is read once; where
  // it is copied, it is copied for some panels.
  const bool once =
      panels <= kPanelsTogether && size.rows * size.terms > kPanelsTogether * room.elements;
  const auto together = once || copies_left ? std::min(panels, kPanelsTogether) : 1;
  const auto longest = std::max<std::int64_t>(
      std::min(room.left_terms, (room.elements / together - room.slack) / tile.width()), 1);
  const auto chunks = std::max<std::int64_t>(ceil_of(size.terms, longest), 1);
  const auto terms = std::max<std::int64_t>(ceil_of(size.terms, chunks), 1);
  return {terms, std::min(panels, room.elements / (terms * tile.width() + room.slack)),
          std::max(room.elements / terms / tile.mr, std::int64_t{1}) * tile.mr, once};
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
  const auto [terms, most, strip, once] = chunks_of(size, tile, room, false);
  const double tile_cycles = cycles_of_tile(size, tile);
  PanelCut best{tiles * tile.mr, most, terms, strip};
  double best_cycles = std::numeric_limits<double>::infinity();
  for (auto wide = most; wide > 0; wide = wide > 1 ? (wide + 1) / 2 : 0)
    for (std::int64_t parts = 1; parts <= std::min(tiles, kMostParts); parts += (parts + 3) / 4) {
      const auto tall = ceil_of(tiles, parts), blocks = ceil_of(panels, wide);
      const auto items = ceil_of(tiles, tall) * blocks * size.batches;
      const auto cycles_of = [&](std::int64_t across, std::int64_t down, std::int64_t cuts) {
        const auto wide_panels = static_cast<double>(across), rows = static_cast<double>(down);
        return wide_panels * (rows + static_cast<double>(cuts) * pack_tiles) * tile_cycles;
      };
      const double fetch = (once ? kFarRows : kNearRows) * tile_cycles;
      const double largest =
          cycles_of(wide, tall, 1) + static_cast<double>(tall) * fetch + kItemCycles;
      const double all =
          static_cast<double>(size.batches) * (cycles_of(panels, tiles, ceil_of(tiles, tall)) +
                                               static_cast<double>(tiles * blocks) * fetch) +
          static_cast<double>(items) * kItemCycles;
      const double cycles = end_of(all, largest, items, cores);
      if (cycles < best_cycles) best_cycles = cycles, best = {tall * tile.mr, wide, terms, strip};
      if (items > kManyItems * cores) break;  // finer cuts only cost
    }
  return best;
}

double rounds_of(std::int64_t items, std::int64_t cores) {
  constexpr double kTail = 0.35;
  return std::max(static_cast<double>(ceil_of(items, cores)),
                  static_cast<double>(items) / static_cast<double>(cores) + kTail);
}

std::int64_t panel_vector(const KernelConfig& config, DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  return std::max<std::int64_t>(config.vector_width * 4 / size, 2);
}

PanelShares share_product(const ProductSize& size, const PanelTile& tile, const PanelRoom& room,
                          std::int64_t cores, double pack_tiles, double left_tiles) {
  const auto [terms, most, strip, once] = chunks_of(size, tile, room, left_tiles > 0);
  const auto wide = once || left_tiles > 0 ? std::min(most, kPanelsTogether) : 1;
  const auto blocks = ceil_of(ceil_of(size.columns, tile.width()), wide);
  const auto down = ceil_of(size.rows, tile.mr), units = down * blocks;  // tiles of `wide` panels
  const double across = static_cast<double>(wide), batches = static_cast<double>(size.batches);
  const double unit_cycles = (across + left_tiles) * cycles_of_tile(size, tile);
  PanelShares best{wide, terms, strip, 1, units, 0};
  double best_cycles = std::numeric_limits<double>::infinity();
  for (std::int64_t items = 1; items <= std::min(units, kManyItems * cores);
       items += items < cores ? 1 : cores) {
    // With one batch it is known who begins. The others' cores wake meanwhile.
    const bool knows_first = size.batches == 1 && items > 1 && cores > 1;
    const auto extra = knows_first ? static_cast<std::int64_t>(kLateCycles / unit_cycles) : 0;
    if (extra + items > units) break;
    const auto tiles = ceil_of(units - extra, items);
    auto cuts = blocks;  // as many panels are made, and one more for each cut inside of one
    for (auto at = extra + tiles; at < units; at += tiles) cuts += at % down != 0 ? 1 : 0;
    const auto packs = static_cast<double>(cuts) * across * pack_tiles;
    const double all =
        batches * ((static_cast<double>(units) * unit_cycles + packs * cycles_of_tile(size, tile)) +
                   static_cast<double>(items) * kItemCycles);
    const auto turns = static_cast<double>(ceil_of(items * size.batches, cores));
    const double largest = all / static_cast<double>(items * size.batches);
    const auto busy = static_cast<double>(std::min(items * size.batches, cores));
    const double cycles = items * size.batches == 1
                              ? all
                              : kSeveralCycles + kUneven * largest +
                                    std::max(turns * static_cast<double>(tiles) * unit_cycles,
                                             (all + (busy - 1) * kLateCycles) / busy);
    if (cycles < best_cycles)
      best_cycles = cycles,
      best = {wide, terms, strip, ceil_of(units - extra, tiles), tiles, extra};
  }
  return best;
}

VariantSpace panel_space(const KernelConfig& config, DType dtype, const PanelProduct& product,
                         std::vector<std::size_t> sizes) {
  const auto vec = panel_vector(config, dtype);
  VariantSpace space;
  space.tunables = {{"MR", {4, 6, 8, 9, 12, 13}}, {"NV", {1, 2, 3, 4}}, {"VEC", {vec}}};
  const auto [mr, nv] = best_shape(product, vec, config);
  space.defaults = {{"MR", mr}, {"NV", nv}, {"VEC", vec}};
  // The accumulators and one row of operands have to fit the registers.
  space.declines = [](const Parameters& p) {
    const auto sums = p.at("MR") * p.at("NV");
    return sums + p.at("NV") + 1 > 32 || sums < kFewestSums
               ? fmt::format("{} accumulators are too few or too many", sums)
               : std::string();
  };
  space.sizes = std::move(sizes);
  return space;
}

}  // namespace netcl
