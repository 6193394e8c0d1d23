// The variants of attention for CPUs: how the work is cut, and their launches.
#include "ops/attention/tiles.h"

#include <algorithm>

#include "base/format.h"
#include "ops/parameters.h"
#include "ops/softmax/rows.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr const char* kTiles = "ops/attention/tiles.cl";
constexpr const char* kFew = "ops/attention/few.cl";
constexpr std::int64_t kMostKeys = 256, kMostRows = 256;
constexpr std::int64_t kFewRows = 3, kFewKeys = 64, kFewVectors = 8;
constexpr std::int64_t kItemsPerCore = 8;
constexpr std::int64_t kFewestTiles = 4;  // of a work-item: k is made panels for them
constexpr std::int64_t kLeastRoom = 64 << 10, kMostRoom = 512 << 10;  // bytes
constexpr std::int64_t kBadPitch = 1024;  // bytes: the lines of such rows share sets of the cache

std::int64_t score_pitch(const PanelTile& tile) { return kMostKeys + tile.vec; }

// What a work-item owns. `rows` is 0 when not even one tile fits.
struct Cut {
  std::int64_t rows = 0, block = 0, pitch = 0;

  Cut(const AttentionPlan& plan, const PanelTile& tile, DType acc,
      const ExtendedDeviceProfile& profile) {
    const auto columns = up_to(plan.F, tile.width());
    pitch = attention_pitch(plan.E, tile, acc);
    const auto room = attention_room(acc, profile) - tile.mr * score_pitch(tile);
    const auto per_key = plan.E + columns, per_row = pitch + columns + 2;
    const auto most_keys = std::min(kMostKeys, room / 2 / per_key) / tile.width() * tile.width();
    block = std::min(most_keys, std::max(up_to(plan.S, tile.width()), tile.width()));
    if (block <= 0) return;
    const auto most_rows = std::min(kMostRows, (room - block * per_key) / per_row);
    const auto items = kItemsPerCore * static_cast<std::int64_t>(profile.compute_units);
    const auto wanted = static_cast<std::int64_t>(ceil_div(items, plan.batches));
    const auto even = static_cast<std::int64_t>(ceil_div(plan.L, wanted));
    const auto most = std::min(most_rows, std::max(even, kFewestTiles * tile.mr));
    const auto tiles = most / tile.mr;
    if (tiles == 0) return;
    const auto parts = ceil_div(plan.L, tiles * tile.mr);
    rows = up_to(static_cast<std::int64_t>(ceil_div(plan.L, static_cast<std::int64_t>(parts))),
                 tile.mr);
  }
};

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "tiles are for CPUs";
  const auto plan = plan_attention(call);
  const auto tile = attention_tile(plan.F, call.dtype(), profile);
  if (tile.vec < 4) return fmt::format("vectors of {} are too short", tile.vec);
  if (plan.L == 0 || plan.S == 0 || plan.batches == 0 || plan.F == 0) return "nothing to sum";
  const Cut cut(plan, tile, compute_dtype(call.dtype()), profile);
  return cut.rows > 0
             ? std::string()
             : fmt::format("rows of {} and {} elements leave no room for a tile", plan.E, plan.F);
}

// The arguments that the kernels have in common. They point into this.
struct ForwardArgs {
  Long8 sizes, strides;
  OpArgs args;

  ForwardArgs(const OpCall& call, const AttentionPlan& plan)
      : sizes(plan.sizes()), strides(plan.strides()) {
    args.tensor(call.inputs[0])
        .tensor(call.inputs[1])
        .tensor(call.inputs[2])
        .tensor(plan.mask ? plan.mask : call.inputs[0])
        .tensor(call.outputs[0])
        .tensor(call.outputs[1])
        .by_value(sizes.values.data(), sizeof sizes.values / 2)
        .by_value(strides.values.data(), sizeof strides.values / 2)
        .value(plan.inner)
        .number(plan.scale, call.dtype());
  }
  ForwardArgs(const ForwardArgs&) = delete;
};

void run_tiles(const OpCall& call) {
  const auto& profile = device_profile(call.queue);
  const auto plan = plan_attention(call);
  const auto dtype = call.dtype();
  const auto tile = attention_tile(plan.F, dtype, profile);
  const Cut cut(plan, tile, compute_dtype(dtype), profile);
  const KernelKey key(kTiles, "attention_tiles", {attention_code(plan, dtype), tile.bits()});
  const auto kernel = op_kernel(call.queue, key, [&] {
    return attention_prologue(plan, tile, score_pitch(tile), dtype, profile);
  });
  alignas(32) const std::array<std::int32_t, 8> shares{static_cast<std::int32_t>(cut.rows),
                                                       static_cast<std::int32_t>(cut.block),
                                                       static_cast<std::int32_t>(cut.pitch)};
  ForwardArgs common(call, plan);
  common.args.by_value(shares.data(), sizeof shares)
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(ceil_div(plan.L, cut.rows)), plan.batches}, {1, 1});
}

// ---- few queries

std::string too_many(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "for CPUs";
  const auto plan = plan_attention(call);
  const auto acc = compute_dtype(call.dtype());
  const auto vec = unit_lanes(profile, acc);
  if (plan.L > kFewRows) return fmt::format("{} queries share their keys", plan.L);
  if (plan.S == 0 || vec < 4 || plan.E < vec || plan.F < vec)
    return fmt::format("rows of {} and {} elements are shorter than a vector", plan.E, plan.F);
  const auto group = kFewVectors * vec;
  return kFewRows * (up_to(plan.E, vec) + up_to(plan.F, group)) > attention_room(acc, profile)
             ? fmt::format("rows of {} and {} elements leave no room", plan.E, plan.F)
             : std::string();
}

void run_few(const OpCall& call) {
  const auto& profile = device_profile(call.queue);
  const auto plan = plan_attention(call);
  const auto dtype = call.dtype();
  const auto vec = unit_lanes(profile, compute_dtype(dtype));
  // Of v's columns at a time: all that the registers hold, and few that are computed twice.
  const auto all = static_cast<std::int64_t>(ceil_div(plan.F, vec));
  const auto vectors = static_cast<std::int64_t>(
      ceil_div(all, static_cast<std::int64_t>(ceil_div(all, kFewVectors))));
  const KernelKey key(kFew, "attention_few", {attention_code(plan, dtype), vec, vectors});
  const auto kernel = op_kernel(call.queue, key, [&] {
    return attention_prologue(plan, {1, 1, vec}, kFewKeys + vec, dtype, profile) +
           define("FEW_ROWS", kFewRows) + define("FEW_VECTORS", vectors) + define("KEYS", kFewKeys);
  });
  ForwardArgs(call, plan).args.enqueue(call.queue, kernel, {1, plan.batches}, {1, 1});
}

}  // namespace

PanelTile attention_tile(std::int64_t columns, DType dtype, const ExtendedDeviceProfile& profile) {
  const auto config = config_of("MATMUL_PACKED", {}, profile);
  const auto best = panel_space(config, dtype, columns, {}).defaults;
  return {best.at("MR"), best.at("NV"), best.at("VEC")};
}

// Half of the core's own cache where the device tells of one as its local memory.
std::int64_t attention_room(DType acc, const ExtendedDeviceProfile& profile) {
  const auto memory = static_cast<std::int64_t>(profile.local_mem_size);
  return std::min(std::clamp(memory / 2, kLeastRoom, kMostRoom), memory) /
         static_cast<std::int64_t>(size_of(acc));
}

std::int64_t attention_pitch(std::int64_t n, const PanelTile& tile, DType acc) {
  const auto pitch = up_to(n, tile.vec);
  const bool bad = pitch * static_cast<std::int64_t>(size_of(acc)) % kBadPitch == 0;
  return bad ? pitch + tile.vec : pitch;
}

std::int64_t attention_code(const AttentionPlan& plan, DType dtype) {
  return (static_cast<std::int64_t>(dtype) * 4 + plan.mask_kind()) * 2 + (plan.causal ? 1 : 0);
}

std::string attention_prologue(const AttentionPlan& plan, const PanelTile& tile,
                               std::int64_t score_pitch, DType dtype,
                               const ExtendedDeviceProfile& profile) {
  const auto masks = plan.mask_kind() == 1 ? fmt::format("convert_{0}{1}(vload{1}(0, (p) + (i)))",
                                                         compute_type(dtype), tile.vec)
                                           : std::string("LOADV(p, i)");
  return t_and_acc(dtype) + tile.defines(dtype) + lane_macros(dtype, tile.vec) +
         define("LOAD_MASKS(p, i)", masks) +
         type_macros("M", plan.mask ? plan.mask.dtype() : dtype) +
         define("MASK", plan.mask_kind()) + define("CAUSAL", plan.causal ? 1 : 0) +
         define("SCORE_PITCH", score_pitch) +
         define("ROOM", attention_room(compute_dtype(dtype), profile));
}

OpVariant attention_few() {
  OpVariant few{"attention.few", "ROWWISE_ITEM", kFew};
  few.declines = too_many;
  few.run = [](const OpCall& call, const VariantRun&) { run_few(call); };
  return few;
}

OpVariant attention_tiles() {
  OpVariant tiles{"attention.tiles", "ROWWISE_ITEM", kTiles};
  tiles.declines = declines;
  tiles.run = [](const OpCall& call, const VariantRun&) { run_tiles(call); };
  return tiles;
}

}  // namespace netcl
