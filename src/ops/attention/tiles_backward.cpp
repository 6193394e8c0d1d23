// The variant of attention's gradients for CPUs: how the work is cut, and its launches.
#include <algorithm>

#include "base/format.h"
#include "ops/attention/tiles.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/attention/tiles_backward.cl";
constexpr std::int64_t kMostKeys = 128, kMostRows = 96;
constexpr std::int64_t kItemsPerCore = 8, kMostParts = 16;
constexpr std::int64_t kElements = 8192;  // of the rows of a work-item that only adds

std::int64_t score_pitch(const PanelTile& tile) { return kMostKeys + tile.vec; }

// What a work-item owns, keys, and how it walks over it. `rows` is 0 when no tile fits.
struct Cut {
  std::int64_t parts = 1, keys = 0, block = 0, rows = 0, q_pitch = 0, dy_pitch = 0;

  Cut(const AttentionPlan& plan, const PanelTile& tile, DType acc,
      const ExtendedDeviceProfile& profile) {
    const auto wide = up_to(plan.E, tile.width()), columns = up_to(plan.F, tile.width());
    q_pitch = attention_pitch(plan.E, tile, acc), dy_pitch = attention_pitch(plan.F, tile, acc);
    const auto room = attention_room(acc, profile) - (tile.mr - 1) * (wide + columns);
    const auto per_key = plan.E + plan.F + 2 * wide + columns;
    const auto per_row = q_pitch + dy_pitch + wide + columns + 2 * score_pitch(tile);
    const auto most = std::min(kMostKeys, room * 5 / 8 / per_key) / tile.width() * tile.width();
    block = std::min(most, up_to(plan.S, tile.width()));
    if (block <= 0) return;
    rows = std::min({kMostRows, (room - block * per_key) / per_row, up_to(plan.L, tile.mr)}) /
           tile.mr * tile.mr;
    // Few batches: several work-items share one, each with a part of dq.
    const auto blocks = static_cast<std::int64_t>(ceil_div(plan.S, block));
    const auto items = kItemsPerCore * static_cast<std::int64_t>(profile.compute_units);
    const auto wanted = static_cast<std::int64_t>(ceil_div(items, plan.batches));
    const auto each = ceil_div(blocks, std::min({wanted, blocks, kMostParts}));
    keys = static_cast<std::int64_t>(each) * block;
    parts = static_cast<std::int64_t>(ceil_div(plan.S, keys));
  }
};

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "tiles are for CPUs";
  const auto plan = plan_attention(call);
  if (plan.L == 0 || plan.S == 0 || plan.batches == 0 || plan.F == 0) return "nothing to sum";
  const auto tile = attention_tile(plan.E, call.dtype(), profile);
  if (tile.vec < 4) return fmt::format("vectors of {} are too short", tile.vec);
  return Cut(plan, tile, compute_dtype(call.dtype()), profile).rows > 0
             ? std::string()
             : fmt::format("rows of {} and {} elements leave no room for a tile", plan.E, plan.F);
}

void run(const OpCall& call) {
  const auto& profile = device_profile(call.queue);
  const auto plan = plan_attention(call);
  const auto dtype = call.dtype(), acc = compute_dtype(dtype);
  const auto tile = attention_tile(plan.E, dtype, profile);
  const Cut cut(plan, tile, acc, profile);
  const auto rows = plan.batches * plan.L;
  const auto wide = up_to(plan.E, tile.width());
  const auto work = Tensor::empty(call.queue, {2 * rows + cut.parts * rows * wide}, acc);
  const auto kernel = [&](const char* name) {
    return op_kernel(
        call.queue, KernelKey(kPath, name, {attention_code(plan, dtype), tile.bits()}),
        [&] { return attention_prologue(plan, tile, score_pitch(tile), dtype, profile); });
  };
  const auto width = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const auto rows_each = [](std::int64_t n) { return std::max<std::int64_t>(kElements / n, 1); };

  const auto &y = call.inputs[4], &lse = call.inputs[5], &dy = call.inputs[6];
  const bool has_dlse = call.has(7);
  OpArgs deltas;
  deltas.tensor(y).tensor(dy).tensor(lse).tensor(has_dlse ? call.inputs[7] : lse).tensor(work);
  deltas.value(rows).value(width(plan.F)).value(width(has_dlse ? 1 : 0)).value(rows_each(plan.F));
  deltas.enqueue(call.queue, kernel("attention_deltas"), ceil_div(rows, rows_each(plan.F)), 1);

  const Long8 sizes = plan.sizes(), strides = plan.strides();
  alignas(32) const std::array<std::int32_t, 8> shares{
      width(cut.keys), width(cut.block), width(cut.rows), width(cut.q_pitch), width(cut.dy_pitch)};
  OpArgs args;
  for (std::size_t i = 0; i < 3; ++i) args.tensor(call.inputs[i]);
  args.tensor(plan.mask ? plan.mask : call.inputs[0])
      .tensor(dy)
      .tensor(call.outputs[1])
      .tensor(call.outputs[2])
      .tensor(work)
      .by_value(sizes.values.data(), sizeof sizes.values / 2)
      .by_value(strides.values.data(), sizeof strides.values / 2)
      .value(plan.inner)
      .number(plan.scale, dtype)
      .by_value(shares.data(), sizeof shares)
      .enqueue(call.queue, kernel("attention_backward_tiles"), {cut.parts, plan.batches}, {1, 1});

  const auto count = rows_each(plan.E * cut.parts);
  OpArgs sum;
  sum.tensor(work).tensor(call.outputs[0]).value(rows).value(width(plan.E));
  sum.value(width(cut.parts)).value(count).number(plan.scale, dtype);
  sum.enqueue(call.queue, kernel("attention_add_parts"), ceil_div(rows, count), 1);
}

}  // namespace

OpVariant attention_backward_tiles() {
  OpVariant tiles{"attention_backward.tiles", "", kPath};
  tiles.declines = declines;
  tiles.run = [](const OpCall& call, const VariantRun&) { run(call); };
  return tiles;
}

}  // namespace netcl
