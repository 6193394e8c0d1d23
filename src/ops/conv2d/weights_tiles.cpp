// How weights_tiles.cl is launched: which tile fits filter and registers, which blocks fit the
// cache, and how the sum is cut into parts for all cores.
#include "ops/conv2d/weights_tiles.h"

#include "base/format.h"
#include "ops/conv2d/launch.h"
#include "ops/vector_lanes.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/weights_tiles.cl";
constexpr const char* kSumPath = "ops/conv2d/weights_sum.cl";
constexpr std::int64_t kRowElements = 1 << 16;  // of local memory for x: a part of a core's L2
constexpr std::int64_t kUnits = 8;              // work-groups per core: they do not run evenly
constexpr std::int64_t kUnitWork = 1 << 19;     // multiplications that make a work-group worthwhile

std::int64_t up(std::int64_t n, std::int64_t unit) {
  return static_cast<std::int64_t>(ceil_div(n, unit)) * unit;
}

ConvSizes sizes_of(const OpCall& call) {
  return weights_sizes("conv2d_backward_weights", call.inputs[0].shape(), call.inputs[1].shape(),
                       call.attributes);
}

// A filter of one tap and one step sees no rows: one long row has fewer ends.
ConvSizes flattened(ConvSizes s) {
  if (s.is_pointwise() && !s.is_strided() && !s.is_padded() && s.H == s.P && s.W == s.Q)
    s.W = s.Q = s.H * s.W, s.H = s.P = 1;
  return s;
}

struct Tile {
  std::int64_t vec = 0, vectors = 0, channels = 1, rows = 1;
  std::int64_t registers = 0;  // that can hold sums

  std::int64_t taps(const ConvSizes& s) const { return channels * rows * s.S; }
  // The share of the device's multiplications that is useful: none on padding, and none lost in
  // waiting for loads (two in a cycle) or for sums (four cycles, two at a time).
  double rate(const ConvSizes& s) const {
    const auto used = [](std::int64_t size, std::int64_t unit) {
      return static_cast<double>(size) / static_cast<double>(up(size, unit));
    };
    const auto sums = static_cast<double>(taps(s) * vectors);
    const auto loads = static_cast<double>(taps(s) + vectors);
    return used(s.R, rows) * used(s.group_channels(), channels) * sums /
           std::max({sums, loads, 8.0});
  }
};

// Of the tiles that fit the registers the best one, and of those the smallest.
Tile tile_of(const ConvSizes& s, const ExtendedDeviceProfile& profile, DType dtype) {
  Tile tile;
  const auto width = detail::vector_unit_floats(profile);
  tile.vec = unit_lanes(profile, compute_dtype(dtype));
  tile.registers = width == 16 ? 28 : 12;  // of 32 or 16: a panel's vectors and a value need some
  tile.vectors = 1;
  // Other filters than 1x1 need a pointer per row.
  const auto pointers = s.is_pointwise() ? tile.registers : 8;
  auto best = tile;
  for (tile.vectors = s.group_filters() > tile.vec ? 2 : 1; tile.vectors > 0; --tile.vectors)
    for (tile.rows = 1; tile.rows <= std::max<std::int64_t>(s.R, 1); ++tile.rows)
      for (tile.channels = 1; tile.channels <= std::max<std::int64_t>(s.group_channels(), 1);
           ++tile.channels) {
        if (tile.taps(s) * tile.vectors > tile.registers || tile.rows * tile.channels > pointers)
          break;
        if (tile.rate(s) > best.rate(s)) best = tile;
      }
  return best;
}

// Pixels, filters and channels that a work-group treats at a time, and the parts of the pixels.
struct Blocks {
  std::int64_t pixels = 256, row_elements = 0;  // of local memory
  std::int64_t p = 0, q = 0, k = 0, c = 0, parts = 0, pitch = 0, channel_rows = 0;

  std::int64_t count(const ConvSizes& s) const {
    return static_cast<std::int64_t>(ceil_div(s.P, p) * ceil_div(s.Q, q)) * s.N;
  }
};

std::int64_t even(std::int64_t size, std::int64_t most) {
  return static_cast<std::int64_t>(ceil_div(size, static_cast<std::int64_t>(ceil_div(size, most))));
}

std::int64_t channel_elements(const ConvSizes& s, const Tile& tile, const Blocks& b) {
  return s.is_pointwise() ? b.pixels + tile.vec : b.channel_rows * b.pitch;
}

// Rows and columns of a block, as many as `pixels` and the local memory for x allow.
void fit_pixels(const ConvSizes& s, const Tile& tile, Blocks& b) {
  const auto filter_rows = up(s.R, tile.rows);
  b.q = even(s.Q, std::min(s.Q, b.pixels));
  b.p = even(s.P, std::clamp<std::int64_t>(b.pixels / b.q, 1, s.P));
  for (;;) {
    b.pitch = (b.q - 1) * s.stride_w + (s.S - 1) * s.dilation_w + 1;
    b.channel_rows = (b.p - 1) * s.stride_h + (filter_rows - 1) * s.dilation_h + 1;
    if (channel_elements(s, tile, b) * tile.channels <= b.row_elements) return;
    auto& longer = b.p > 1 ? b.p : b.q;
    if (longer == 1) {
      b.p = 0;  // not even one pixel
      return;
    }
    longer = (longer + 1) / 2;
  }
}

Blocks blocks_of(const ConvSizes& s, const Tile& tile, const ExtendedDeviceProfile& profile,
                 DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  const auto room = static_cast<std::int64_t>(profile.local_mem_size) / size - 256;
  const auto panel = tile.vec * tile.vectors;
  Blocks b;
  if (room < 3 * b.pixels * panel) b.pixels = 64;
  b.row_elements = std::min(kRowElements, room - b.pixels * panel);
  fit_pixels(s, tile, b);
  if (b.p == 0) return b;
  const auto most_c = b.row_elements / channel_elements(s, tile, b) / tile.channels * tile.channels;
  b.c = std::min(most_c, up(s.group_channels(), tile.channels));
  b.k = up(s.group_filters(), panel);
  const auto products = s.N * s.pixels() * s.K * s.taps();
  const auto wanted = std::clamp<std::int64_t>(
      products / kUnitWork, 1, kUnits * static_cast<std::int64_t>(profile.compute_units));
  const auto units = [&] {
    return s.groups * static_cast<std::int64_t>(ceil_div(s.group_filters(), b.k) *
                                                ceil_div(s.group_channels(), b.c));
  };
  // Every part writes sums as large as dw. A large dw is rather cut itself.
  if (s.K * s.taps() > 1 << 16) {
    while (units() < wanted && b.k > 4 * tile.vec) b.k = up(b.k / 2, panel);
    while (units() < wanted && b.c > 2 * tile.channels && b.c * s.R * s.S > 64)
      b.c = up(b.c / 2, tile.channels);
  }
  b.parts =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(ceil_div(wanted, units())), 1, b.count(s));
  return b;
}

KernelPtr tiles_kernel(const OpCall& call, const ConvSizes& s, const Tile& tile, const Blocks& b) {
  const auto dtype = call.dtype();
  return op_kernel(call.queue,
                   {kPath,
                    "weights_tiles",
                    {bit(dtype), tile.vec, tile.vectors, tile.channels, tile.rows, s.S,
                     s.is_pointwise(), s.stride_w, s.dilation_w, b.pixels, b.row_elements}},
                   [&] {
                     return t_and_acc(dtype) + vector_macros(dtype, tile.vec) +
                            define("VECTORS", tile.vectors) + define("CHANNELS", tile.channels) +
                            define("FILTER_ROWS", tile.rows) + define("FILTER_COLUMNS", s.S) +
                            define("PIXELS", b.pixels) + define("ROW_ELEMENTS", b.row_elements) +
                            define("POINTWISE", s.is_pointwise()) + define("STEP_W", s.stride_w) +
                            define("DILATION_W", s.dilation_w);
                   });
}

KernelPtr sum_kernel(const OpCall& call, const Tile& tile) {
  const auto dtype = call.dtype();
  const auto panel = tile.vec * tile.vectors;
  return op_kernel(call.queue, {kSumPath, "weights_sum", {bit(dtype), tile.vec, panel}}, [&] {
    return t_and_acc(dtype) + vector_macros(dtype, tile.vec) + define("PANEL", panel);
  });
}

std::int32_t int32(std::int64_t value) { return static_cast<std::int32_t>(value); }

void run(const OpCall& call, const VariantRun&) {
  const auto s = flattened(sizes_of(call));
  const auto& profile = device_profile(call.queue);
  const auto tile = tile_of(s, profile, call.dtype());
  const auto b = blocks_of(s, tile, profile, call.dtype());
  const auto panel = tile.vec * tile.vectors, padded_taps = up(s.R, tile.rows) * s.S;
  const auto all_taps = up(s.group_channels(), tile.channels) * padded_taps;
  const auto panels = static_cast<std::int64_t>(ceil_div(s.group_filters(), panel));
  const auto sums = Tensor::empty(call.queue, {b.parts, s.groups, panels, all_taps, panel},
                                  compute_dtype(call.dtype()));
  const auto geometry = s.geometry();
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(call.inputs[1])
      .tensor(sums)
      .by_value(&geometry, sizeof geometry)
      .value(int32(b.parts))
      .value(int32(b.p))
      .value(int32(b.q))
      .value(int32(b.k))
      .value(int32(b.c))
      .value(int32(b.pitch))
      .value(int32(b.channel_rows))
      .enqueue(call.queue, tiles_kernel(call, s, tile, b),
               {b.parts, static_cast<std::int64_t>(ceil_div(s.group_filters(), b.k)),
                s.groups * static_cast<std::int64_t>(ceil_div(s.group_channels(), b.c))},
               {1, 1, 1});
  struct alignas(16) {
    std::int32_t channels, rows, columns, below;
  } const shape{int32(tile.channels), int32(tile.rows), int32(s.S),
                int32(up(s.R, tile.rows) / tile.rows)};
  OpArgs()
      .tensor(sums)
      .tensor(call.outputs[0])
      .value(int32(b.parts))
      .value(int32(s.groups))
      .value(int32(s.group_filters()))
      .value(int32(s.R * s.S))
      .by_value(&shape, sizeof shape)
      .value(int32(s.taps()))
      .value(all_taps)
      .enqueue(call.queue, sum_kernel(call, tile),
               {static_cast<std::int64_t>(ceil_div(s.taps(), tile.vec)),
                static_cast<std::int64_t>(ceil_div(s.group_filters(), tile.vec)), s.groups},
               {1, 1, 1});
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = flattened(sizes_of(call));
  if (s.N * s.pixels() == 0) return "dy is empty";
  if (s.groups > 1 && s.group_filters() < 4) return "groups of under 4 filters waste the vectors";
  const auto tile = tile_of(s, profile, call.dtype());
  if (s.S > tile.registers)
    return fmt::format("a filter row of {} taps exceeds the registers", s.S);
  if (blocks_of(s, tile, profile, call.dtype()).p == 0)
    return "the rows that one pixel sees exceed the local memory";
  return {};
}

}  // namespace

OpVariant weights_tiles_variant() {
  return {"conv2d_backward_weights.tiles", "", kPath, declines, run};
}

}  // namespace netcl::conv
