// conv2d_backward_data.phases: how phases.cl is launched.
#include <algorithm>

#include "base/format.h"
#include "ops/conv2d/launch.h"
#include "ops/conv2d/planes.h"
#include "ops/vector_lanes.h"
#include "ops/weight_forms.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/phases.cl";
constexpr std::int64_t kMostRows = 64;      // of a block
constexpr std::int64_t kFewestFilters = 8;  // of stride 1: fewer are what planes.cl is for
constexpr std::int64_t kCopyVectors = 3;    // that copying a row takes besides its own
constexpr std::int64_t kMostTaps = 64;      // of a row of the filter: they are unrolled

// Along one axis: what the places of dx from a multiple of the stride on see of dy. The place
// i * stride + f meets the tap f + first - d * stride in i + start + d, for d below `shifts`.
struct Window {
  std::int64_t first = 0, shifts = 0, start = 0;
  Window(std::int64_t taps, std::int64_t stride, std::int64_t padding) {
    const auto offset = padding % stride;
    // Of the last tap and of the first one, from padding / stride on.
    const auto lowest =
        taps > offset ? -((taps - 1 - offset) / stride) : (offset - taps + stride) / stride;
    first = offset - lowest * stride;
    shifts = (offset > 0 ? 1 : 0) - lowest + 1;
    start = padding / stride + lowest;
  }
};

struct alignas(32) Cut {
  std::array<std::int32_t, 8> values{};
};

struct Tile {
  std::int64_t channels = 0, vectors = 0, vec = 0;
};

struct Blocks {
  std::int64_t rows = 0, vectors = 0;  // in steps of the stride
};

// The sums that fit the registers and take the fewest instructions for what they compute.
Tile tile_of(const ConvSizes& s, const ExtendedDeviceProfile& profile, DType dtype) {
  const auto width = detail::vector_unit_floats(profile);
  const auto vec = unit_lanes(profile, compute_dtype(dtype));
  const std::int64_t registers = width == 16 ? 32 : 16, most_vectors = 8;
  const auto shifts = Window(s.S, s.stride_w, s.padding_w).shifts;
  Tile best;
  double least = 0;
  for (std::int64_t c = 1; c <= s.group_channels(); ++c)
    for (std::int64_t v = 1; v <= most_vectors; ++v) {
      if (c * s.stride_w * v + v + 1 > registers) break;
      // For each vector of results: products, and loads of taps and of dy, which cross lines.
      const auto blocks = static_cast<double>(ceil_div(s.group_channels(), c));
      const auto all = static_cast<double>(v * s.S * c + s.S * c + 2 * v * shifts);
      const double cost = blocks * all / static_cast<double>(v);
      if (best.channels == 0 || cost < least) best = {c, v, vec}, least = cost;
    }
  return best;
}

// Vectors and rows of dx in steps of the stride.
std::int64_t across(const ConvSizes& s, std::int64_t vec) {
  return static_cast<std::int64_t>(ceil_div(s.W, s.stride_w * vec));
}
std::int64_t down(const ConvSizes& s) {
  return static_cast<std::int64_t>(ceil_div(s.H, s.stride_h));
}

// The block with which the cores are done first; of no rows where not even one fits.
Blocks blocks_of(const ConvSizes& s, const Tile& tile, const ExtendedDeviceProfile& profile,
                 DType work) {
  const Window h(s.R, s.stride_h, s.padding_h), w(s.S, s.stride_w, s.padding_w);
  const auto vectors = across(s, tile.vec);
  const auto blocks = ceil_div(s.group_channels(), tile.channels);
  const auto terms = static_cast<double>(s.group_filters() * s.R * s.S) *
                     static_cast<double>(tile.channels) * static_cast<double>(blocks);
  Blocks best;
  double least = 0;
  for (std::int64_t strips = 1; strips < 2 * vectors; strips *= 2) {
    Blocks one{1, static_cast<std::int64_t>(ceil_div(vectors, strips))};
    for (; one.rows <= std::min(kMostRows, down(s)); ++one.rows) {
      const auto copies = (one.rows + h.shifts - 1) * s.group_filters();
      if (copies * (one.vectors * tile.vec + w.shifts - 1) > near_elements(profile, work)) break;
      const auto tiles = ceil_div(one.rows * one.vectors, tile.vectors);
      const double product = static_cast<double>(tiles) * static_cast<double>(tile.vectors) * terms;
      const double copy = static_cast<double>(copies * (one.vectors + kCopyVectors)) * kCopyCycles;
      const auto items =
          s.N * s.groups *
          static_cast<std::int64_t>(ceil_div(vectors, one.vectors) * ceil_div(down(s), one.rows));
      const double cycles = cycles_of_items(product + copy, items, profile);
      if (best.rows == 0 || cycles < least) best = one, least = cycles;
    }
  }
  return best;
}

// The filters in the order in which tiles of `block` channels take them.
Tensor blocked(const Tensor& w, std::int64_t groups, std::int64_t block) {
  const auto s = sizes_of_filters(w, groups);
  const auto blocks = static_cast<std::int64_t>(ceil_div(s.group_channels(), block));
  const auto to = Tensor::empty(w.queue(), {groups * blocks, s.R, s.group_filters(), s.S, block},
                                compute_dtype(w.dtype()));
  const auto kernel =
      op_kernel(w.queue(), {"ops/conv2d/backward.cl", "block_filters", {bit(w.dtype())}},
                [&] { return t_and_acc(w.dtype()); });
  const auto geometry = s.geometry();
  enqueue_items(w.queue(), kernel,
                OpArgs()
                    .tensor(w)
                    .tensor(to)
                    .by_value(&geometry, sizeof geometry)
                    .value(static_cast<std::int32_t>(block))
                    .value(to.numel()),
                to.numel());
  return to;
}

void run(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of_data(call);
  const auto dtype = call.dtype(), work = compute_dtype(dtype);
  const auto& profile = device_profile(call.queue);
  const auto tile = tile_of(s, profile, dtype);
  const auto blocks = blocks_of(s, tile, profile, work);
  const Window h(s.R, s.stride_h, s.padding_h), w(s.S, s.stride_w, s.padding_w);
  const auto filters =
      form_of({"conv2d_blocked",
               {s.groups, tile.channels},
               [groups = s.groups, block = tile.channels](const Tensors& sources) -> Tensors {
                 return {blocked(sources[0], groups, block)};
               }},
              {call.inputs[1]});
  // Lines of dy for each row of a filter in a tile: so many as its vectors are.
  const auto fetches = static_cast<std::int64_t>(ceil_div(tile.vectors, s.R));
  const auto kernel = op_kernel(
      call.queue,
      {kPath,
       "conv2d_phases",
       {bit(dtype), tile.channels, tile.vectors, tile.vec, s.stride_w, s.S, w.first, fetches}},
      [&] {
        return t_and_acc(dtype) + vector_macros(dtype, tile.vec) + define("NC", tile.channels) +
               define("STEP", s.stride_w) + define("NV", tile.vectors) + define("TAPS", s.S) +
               define("FIRST", w.first) + define("FETCHES", fetches) + define("SHIFTS", w.shifts) +
               define("ELEMENTS", near_elements(profile, work));
      });
  const auto strips = static_cast<std::int64_t>(ceil_div(across(s, tile.vec), blocks.vectors));
  Cut cut;
  const auto values = {blocks.rows, blocks.vectors, strips, h.start, w.start, h.shifts, h.first};
  std::transform(values.begin(), values.end(), cut.values.begin(),
                 [](std::int64_t v) { return static_cast<std::int32_t>(v); });
  const auto geometry = s.geometry();
  const bool has_bias = call.has(2);
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(filters)
      .tensor(call.inputs[has_bias ? 2 : 1])
      .tensor(call.outputs[0])
      .by_value(&geometry, sizeof geometry)
      .by_value(&cut, sizeof cut)
      .value(std::int32_t{has_bias})
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(ceil_div(down(s), blocks.rows)) * strips, s.groups, s.N},
               {1, 1, 1});
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = sizes_of_data(call);
  if (s.pixels() == 0 || s.K == 0) return "dy is empty";
  if (s.is_dilated()) return "dilated: the rows that a phase sees are not neighbours";
  if (s.group_channels() > kFewChannels)
    return fmt::format("{} channels per group are a matrix product", s.group_channels());
  if (!s.is_strided() && s.group_filters() < kFewestFilters)
    return fmt::format("stride 1 and {} filters per group", s.group_filters());
  if (s.S > kMostTaps) return fmt::format("rows of {} taps are not unrolled", s.S);
  const auto tile = tile_of(s, profile, call.dtype());
  if (tile.channels == 0) return fmt::format("{} phases exceed the registers", s.stride_w);
  if (blocks_of(s, tile, profile, compute_dtype(call.dtype())).rows == 0)
    return "the rows that a row of dx sees exceed the local memory";
  return {};
}

}  // namespace

OpVariant data_phases_variant() {
  return {"conv2d_backward_data.phases", "", kPath, declines, run};
}

}  // namespace netcl::conv
