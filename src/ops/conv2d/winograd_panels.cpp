// Winograd's F(4x4, 3x3) on CPUs: the filters' transform, then either one kernel for the rest
// (conv2d.winograd_panels) or, where the transformed inputs of all channels are too many for a
// core's cache, 36 products with transforms around (conv2d.winograd_batched), of strips of filters
// where tiles are few.
#include <limits>

#include "base/format.h"
#include "device/vector_unit.h"
#include "ops/conv2d/gemm.h"
#include "ops/conv2d/winograd_filters.h"
#include "ops/conv2d/winograd_strips.h"
#include "ops/conv2d/winograd_tiles.h"
#include "ops/matmul/plan.h"
#include "ops/panels.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/winograd_panels.cl";
constexpr const char* kBatched = "ops/conv2d/winograd_batched.cl";
constexpr std::int64_t kCache = 900 << 10;       // bytes of a core's own that panels may fill
constexpr std::int64_t kMostPanels = 640 << 10;  // where the batched product is faster
constexpr std::int64_t kTermStep = 32;  // local memory is made for a multiple of so many channels

std::int64_t capacity(const ConvSizes& s) {
  return static_cast<std::int64_t>(ceil_div(s.C, kTermStep)) * kTermStep;
}

std::int64_t local_bytes(const ConvSizes& s, std::int64_t rows, std::int64_t columns, DType acc) {
  constexpr std::int64_t kSlack = 16;  // elements behind a panel, a vector at most
  return kPlaces * ((capacity(s) + rows) * columns + kSlack) *
         static_cast<std::int64_t>(size_of(acc));
}

// How one kernel does it all: the filters of a work-item, and how long all of them take.
struct PanelWork {
  std::int64_t filters;
  double cycles;
};

// A work-item transforms its inputs for its own filters, so that fewer of them mean more
// transforms; it reads their numbers once for all of its tiles.
PanelWork panel_work(const ConvSizes& s, const PanelTile& tile, std::int64_t cores) {
  constexpr double kInputs = 300, kResults = 100;  // cycles of the transforms of a vector of tiles
  constexpr double kRead = 1.5;    // what it costs to fetch a filter, in vectors multiplied with it
  constexpr double kStart = 4000;  // of a work-item
  const auto channels = static_cast<double>(s.C), vectors = static_cast<double>(tile.nv);
  const auto panels = static_cast<std::int64_t>(ceil_div(tiles_of(s).all, tile.width()));
  const auto strips = static_cast<std::int64_t>(ceil_div(s.K, tile.mr));
  PanelWork best{s.K, std::numeric_limits<double>::infinity()};
  for (std::int64_t parts = 1; parts <= std::min(strips, 4 * cores); ++parts) {
    const auto filters = static_cast<std::int64_t>(ceil_div(strips, parts)) * tile.mr;
    const auto rows = static_cast<double>(std::min(filters, s.K));
    const auto items = panels * static_cast<std::int64_t>(ceil_div(s.K, filters));
    const double cycles =
        rounds_of(items, cores) * (kPlaces / 2.0 * channels * rows * (vectors + kRead) +
                                   vectors * (channels * kInputs + rows * kResults) + kStart);
    if (cycles < best.cycles) best = {filters, cycles};
  }
  return best;
}

void run(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const PanelTile tile(with);
  const auto kernel = op_kernel(
      call.queue,
      {kPath, "winograd_panels", {bit(call.dtype()), epilogue.bits(), tile.bits(), capacity(s)}},
      [&] {
        return t_and_acc(call.dtype()) + epilogue.defines() + tile.defines(call.dtype()) +
               define("TERMS", capacity(s));
      });
  auto tiles = tiles_of(s);
  const auto u = vector_filters(call, kPatch, tile.vec, false);
  const auto panels = static_cast<std::int64_t>(ceil_div(tiles.all, tile.width()));
  tiles.argument = panel_work(s, tile, device_profile(call.queue).compute_units).filters;
  const auto geometry = s.geometry();
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(u).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, call.outputs[0])
      .by_value(&geometry, sizeof geometry)
      .by_value(&tiles, sizeof tiles)
      .value(epilogue.has_bias())
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(ceil_div(s.K, tiles.argument)), panels}, {1, 1});
}

// Two vectors of tiles of all channels have to fit beside what passes through the cache.
std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto s = sizes_of_forward(call);
  const auto width = 2 * detail::vector_unit_floats(profile);
  const auto bytes = local_bytes(s, 4, width, DType::float32);
  const auto room = std::min<std::int64_t>(
      static_cast<std::int64_t>(profile.local_mem_size) * 3 / 4, kMostPanels);
  if (bytes > room)
    return fmt::format("its panels need {} bytes, more than the {} of a core", bytes, room);
  return not_winograd(s);
}

// As many vectors of tiles as end first and stay in the core's cache; the rows fill the registers
// beside them.
VariantSpace space(const OpCall& call, const ExtendedDeviceProfile& profile,
                   const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  const auto acc = compute_dtype(call.dtype());
  const auto tiles = tiles_of(s).all;
  auto space = panel_space(config, call.dtype(), tiles,
                           {static_cast<std::size_t>(s.K), static_cast<std::size_t>(tiles),
                            static_cast<std::size_t>(s.C)});
  const auto room = static_cast<std::int64_t>(profile.local_mem_size);
  auto vec = space.defaults["VEC"];
  while (vec > 2 && local_bytes(s, 4, vec, acc) > room) vec /= 2;
  const std::int64_t most = config.tile_n / config.vector_width, sums = config.tile_m * most;
  const auto tile_of = [&](std::int64_t vectors) {
    return PanelTile(vectors == 1 ? sums / 2 : sums / vectors, vectors, vec);
  };
  auto best = tile_of(1);
  for (std::int64_t vectors = 2; vectors <= most; ++vectors) {
    const auto tile = tile_of(vectors);
    if (local_bytes(s, tile.mr, tile.width(), acc) <= std::min(room, kCache) &&
        panel_work(s, tile, profile.compute_units).cycles <
            panel_work(s, best, profile.compute_units).cycles)
      best = tile;
  }
  const auto few = local_bytes(s, best.mr, best.width(), acc) > room;
  space.tunables = {{"MR", {4, 6, 8, 12}}, {"NV", {1, 2, 3}}, {"VEC", {vec}}};
  space.defaults = {{"MR", few ? 4 : best.mr}, {"NV", best.nv}, {"VEC", vec}};
  space.declines = [s, acc, room](const Parameters& p) {
    const auto bytes = local_bytes(s, p.at("MR"), p.at("NV") * p.at("VEC"), acc);
    return bytes > room ? fmt::format("{} bytes of local memory, the device has {}", bytes, room)
                        : std::string();
  };
  return space;
}

void run_batched(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto epilogue = epilogue_of(call);
  const auto acc = compute_dtype(call.dtype());
  const PanelTile tile(with);
  auto tiles = tiles_of(s);
  const auto strips = strip_tile(tiles.all, tile.vec, with.config);
  const auto u = vector_filters(call, kPatch, tile.vec, strips.has_value());
  const auto columns = static_cast<std::int64_t>(ceil_div(tiles.all, tile.vec)) * tile.vec;
  tiles.argument = tile_pitch(tiles.all, tile.vec);
  const auto& pitch = tiles.argument;
  const auto kernel = [&](const char* name) {
    return op_kernel(call.queue, {kBatched, name, {bit(call.dtype()), epilogue.bits(), tile.vec}},
                     [&] {
                       return t_and_acc(call.dtype()) + epilogue.defines() +
                              vector_macros(call.dtype(), tile.vec);
                     });
  };
  const auto geometry = s.geometry();
  const auto matrices = [&](std::int64_t rows) {
    return Tensor::empty(call.queue, {kPlaces, odd(rows), pitch}, acc);
  };
  const auto used = [&](const Tensor& all, std::int64_t rows) {
    return all.narrow(1, 0, rows).narrow(2, 0, columns);
  };
  const auto v = matrices(s.C), m = matrices(s.K);
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(v)
      .by_value(&geometry, sizeof geometry)
      .by_value(&tiles, sizeof tiles)
      .value(odd(s.C) * pitch)
      .enqueue(call.queue, kernel("winograd_batched_inputs"), s.C, 1);
  if (strips)
    StripProduct{kPlaces, s.K, s.C, pitch, odd(s.C) * pitch, odd(s.K) * pitch}.enqueue(
        call.queue, u, v, m, *strips);
  else
    packed_product(call.queue, plan_matmul(u, used(v, s.C), used(m, s.K)), tile);
  OpArgs args;
  args.tensor(m).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, call.outputs[0])
      .by_value(&geometry, sizeof geometry)
      .by_value(&tiles, sizeof tiles)
      .value(odd(s.K) * pitch)
      .value(epilogue.has_bias())
      .enqueue(call.queue, kernel("winograd_batched_results"), s.K, 1);
}

std::string declines_batched(const OpCall& call, const ExtendedDeviceProfile&) {
  return not_winograd(sizes_of_forward(call));
}

VariantSpace batched_space(const OpCall& call, const ExtendedDeviceProfile&,
                           const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  const auto tiles = tiles_of(s).all;
  return panel_space(config, call.dtype(), tiles,
                     {static_cast<std::size_t>(s.K), static_cast<std::size_t>(tiles),
                      static_cast<std::size_t>(s.C)});
}

}  // namespace

OpVariant winograd_panels_variant() {
  return {"conv2d.winograd_panels", "CONV2D_WINOGRAD_PANELS", kPath, declines, run, space};
}

OpVariant winograd_batched_variant() {
  return {"conv2d.winograd_batched",
          "CONV2D_WINOGRAD_PANELS",
          kBatched,
          declines_batched,
          run_batched,
          batched_space};
}

}  // namespace netcl::conv
