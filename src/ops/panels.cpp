#include "ops/panels.h"

#include <algorithm>

#include "base/format.h"

namespace netcl {
namespace {

constexpr std::int64_t kPanelBytes = 256 << 10;  // of a core's own cache, beside the other factor
constexpr std::int64_t kFewestRows = 48;

// Of the shapes that fill the registers as well as the rule's, the one that wastes the fewest
// columns of the last panel.
std::pair<std::int64_t, std::int64_t> best_shape(std::int64_t columns, std::int64_t vec,
                                                 const KernelConfig& config) {
  const std::int64_t mr = config.tile_m, nv = config.tile_n / config.vector_width;
  std::pair best{mr, nv};
  const auto computed = [&](std::int64_t vectors) {
    return static_cast<std::int64_t>(ceil_div(columns, vectors * vec)) * vectors;
  };
  for (const std::int64_t vectors : {nv + 1, nv - 1})
    if (computed(vectors) < computed(best.second)) best = {mr * nv / vectors, vectors};
  return best;
}

}  // namespace

std::int64_t PanelTile::terms(DType acc, const ExtendedDeviceProfile& profile) const {
  const auto bytes =
      std::min(kPanelBytes, static_cast<std::int64_t>(profile.local_mem_size) * 3 / 4);
  const auto each = width() * static_cast<std::int64_t>(size_of(acc));
  return std::max<std::int64_t>(bytes / each / 8 * 8, 8);
}

std::string PanelTile::defines(DType dtype, std::int64_t panel_terms, bool chunked) const {
  return vector_macros(dtype, vec) + define("MR", mr) + define("NV", nv) +
         define("KC", panel_terms) + define("CHUNKED", chunked ? 1 : 0);
}

std::int64_t panel_rows(std::int64_t rows, std::int64_t panels, const PanelTile& tile,
                        const ExtendedDeviceProfile& profile, std::int64_t items) {
  const auto wanted = std::max<std::int64_t>(
      static_cast<std::int64_t>(ceil_div(items * profile.compute_units, panels)), 1);
  const auto part = std::max(static_cast<std::int64_t>(ceil_div(rows, wanted)), kFewestRows);
  return static_cast<std::int64_t>(ceil_div(part, tile.mr)) * tile.mr;
}

VariantSpace panel_space(const KernelConfig& config, DType dtype, std::int64_t columns,
                         std::vector<std::size_t> sizes) {
  // The rule thinks in floats; vectors of other elements have the same number of bytes.
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  const auto vec = std::max<std::int64_t>(config.vector_width * 4 / size, 2);
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
