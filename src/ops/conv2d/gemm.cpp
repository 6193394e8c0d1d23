#include "ops/conv2d/gemm.h"

#include <bit>

#include "base/format.h"

namespace netcl::conv {
namespace {

std::uint64_t local_bytes(const Parameters& p, DType dtype) {
  const auto elements = p.at("TILE_K") * (p.at("TILE_M") + p.at("TILE_N") + 2);
  return static_cast<std::uint64_t>(elements) * size_of(compute_dtype(dtype));
}

std::int64_t group_items(const Parameters& p) {
  return p.at("TILE_M") / p.at("WPT") * (p.at("TILE_N") / p.at("WPT"));
}

std::string why_impossible(const Parameters& p, const ExtendedDeviceProfile& profile, DType dtype) {
  if (p.at("WPT") > p.at("TILE_M") || p.at("WPT") > p.at("TILE_N"))
    return "a work-item would own more than the tile";
  if (static_cast<std::size_t>(group_items(p)) > profile.max_work_group_size)
    return fmt::format("{} work-items per group, the device takes {}", group_items(p),
                       profile.max_work_group_size);
  if (local_bytes(p, dtype) > profile.local_mem_size)
    return fmt::format("{} bytes of local memory, the device has {}", local_bytes(p, dtype),
                       profile.local_mem_size);
  return {};
}

std::int64_t power_of_two(std::int64_t value, std::int64_t low, std::int64_t high) {
  const auto clamped = static_cast<std::uint64_t>(std::clamp(value, low, high));
  return static_cast<std::int64_t>(std::bit_floor(clamped));
}

// The rule's tiles, made smaller until they fit a device with less than usual.
Parameters fitting(const ExtendedDeviceProfile& profile, const KernelConfig& config, DType dtype) {
  // With a CPU's emulated barriers nothing is fast; small tiles are at least compiled soon.
  if (profile.is_cpu) return {{"TILE_M", 8}, {"TILE_N", 8}, {"TILE_K", 4}, {"WPT", 2}};
  Parameters p{{"TILE_M", power_of_two(config.tile_m, 16, 64)},
               {"TILE_N", power_of_two(config.tile_n, 16, 64)},
               {"TILE_K", power_of_two(config.tile_k, 8, 16)},
               {"WPT", power_of_two(config.work_per_thread, 1, 8)}};
  while (!why_impossible(p, profile, dtype).empty()) {
    const auto halve = [&](const char* name) { p[name] = std::max<std::int64_t>(p[name] / 2, 1); };
    const bool too_many = static_cast<std::size_t>(group_items(p)) > profile.max_work_group_size;
    if (too_many && p["WPT"] < 4) {
      p["WPT"] *= 2;
    } else if (!too_many && p["TILE_K"] > 2) {
      halve("TILE_K");
    } else {
      if (p["TILE_M"] == 1 && p["TILE_N"] == 1) break;
      halve("TILE_M");
      halve("TILE_N");
      p["WPT"] = std::min({p["WPT"], p["TILE_M"], p["TILE_N"]});
    }
  }
  return p;
}

}  // namespace

std::string GemmTiles::defines() const {
  return define("TILE_M", M) + define("TILE_N", N) + define("TILE_K", K) + define("WPT", per_item);
}

WorkSize GemmTiles::global(std::int64_t rows, std::int64_t columns, std::int64_t matrices) const {
  const auto items = local();
  return {static_cast<std::int64_t>(ceil_div(columns, N) * items[0]),
          static_cast<std::int64_t>(ceil_div(rows, M) * items[1]), matrices};
}

VariantSpace gemm_space(const ExtendedDeviceProfile& profile, const KernelConfig& config,
                        DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t terms) {
  return {
      {{"TILE_M", {16, 32, 64}}, {"TILE_N", {16, 32, 64}}, {"TILE_K", {8, 16}}, {"WPT", {2, 4, 8}}},
      fitting(profile, config, dtype),
      [&profile, dtype](const Parameters& p) { return why_impossible(p, profile, dtype); },
      {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
       static_cast<std::size_t>(terms)}};
}

VariantSpace forward_gemm_space(const OpCall& call, const ExtendedDeviceProfile& profile,
                                const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  return gemm_space(profile, config, call.dtype(), s.group_filters(), s.N * s.pixels(), s.taps());
}

std::int64_t thin_columns(std::int64_t columns, std::int64_t width, std::int64_t vec) {
  return columns > width && columns % width <= vec / 2 ? columns % width : 0;
}

void choose_shape(Parameters& shape, const KernelConfig& config, std::int64_t filters,
                  std::int64_t pixels) {
  const std::int64_t mr = config.tile_m, nv = config.tile_n / config.vector_width;
  const auto work = [&](std::int64_t rows, std::int64_t vectors) {
    const auto width = vectors * shape.at("VEC");
    const auto thin = thin_columns(pixels, width, shape.at("VEC"));
    return rounded_up(filters, rows) *
           (rounded_up(pixels - thin, width) + static_cast<std::size_t>(thin));
  };
  auto least = work(shape["MR"] = mr, shape["NV"] = nv);
  for (const std::int64_t vectors : {nv + 1, nv - 1}) {
    if (vectors < 2) continue;
    const auto rows = mr * nv / vectors;
    if (work(rows, vectors) >= least) continue;
    least = work(shape["MR"] = rows, shape["NV"] = vectors);
  }
}

}  // namespace netcl::conv
