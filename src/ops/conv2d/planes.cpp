// How planes.cl is launched: a convolution as it is, or the gradient with respect to x as a
// convolution of dy.
#include "ops/conv2d/planes.h"

#include "base/format.h"
#include "ops/conv2d/launch.h"
#include "ops/vector_lanes.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/planes.cl";
constexpr std::int64_t kTileRows = 4;
constexpr std::int64_t kElements = 1 << 16;      // of local memory at most: a part of a core's L2
constexpr std::int64_t kNearElements = 1 << 13;  // what stays in L1
constexpr std::int64_t kWeights = 1 << 14;       // of local memory for taps
constexpr std::int64_t kMostTaps = 64;           // that are unrolled

// One convolution with everything that differs between the directions made plain.
struct Planes {
  std::int64_t images = 0, groups = 1, channels = 0, filters = 0;  // of a group
  std::int64_t H = 0, W = 0, P = 0, Q = 0, R = 0, S = 0;
  std::int64_t step_h = 1, step_w = 1, dilation_h = 1, dilation_w = 1, pad_h = 0, pad_w = 0;
  std::array<std::int64_t, 6> filter{};  // between filters, channels, rows, columns, groups; first
  // The least and the largest distance from the first tap with which all taps of a row are in x.
  std::int64_t inside_left() const { return pad_w; }
  std::int64_t inside_right() const { return pad_w + W - Q; }
};

struct Shape8 {
  alignas(32) std::array<std::int32_t, 8> values{};
};
struct Shape4 {
  alignas(16) std::array<std::int32_t, 4> values{};
};

struct Tiles {
  std::int64_t vec = 0, vectors = 1, filters = 1, phase = 0, rows = 0, elements = 0, weights = 0;
  bool direct = false;
};

std::int32_t int32(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Whether x is read where it lies: one channel, whose taps stay in registers.
bool is_direct(const Planes& v, std::int64_t vec, std::int64_t filters, bool many_registers) {
  return v.channels == 1 && v.step_h == 1 && v.step_w == 1 && v.dilation_h == 1 && v.Q >= vec &&
         v.R * v.S > 0 && v.inside_left() <= vec &&
         (v.S - 1) * v.dilation_w - v.inside_right() <= vec &&
         filters * v.R * v.S <= (many_registers ? 25 : 9);
}

std::int64_t padded(std::int64_t size, std::int64_t unit) {
  return static_cast<std::int64_t>(ceil_div(size, unit)) * unit;
}

// Elements of local memory for blocks of `rows` rows of the result.
std::int64_t elements_for(const Planes& v, const Tiles& tiles, std::int64_t rows) {
  const auto height = (rows + kTileRows - 1) * v.step_h + (v.R - 1) * v.dilation_h + 1;
  return v.channels * std::max<std::int64_t>(height, 1) * v.step_w * tiles.phase + tiles.vec;
}

Tiles tiles_of(const Planes& v, const ExtendedDeviceProfile& profile, DType dtype) {
  const auto width = detail::vector_unit_floats(profile);
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  Tiles tiles;
  tiles.vec = unit_lanes(profile, compute_dtype(dtype));
  const std::int64_t most = width == 16 ? 6 : 3;  // times kTileRows registers
  for (std::int64_t n = 1; n <= std::min(most, v.filters); ++n)
    if (padded(v.filters, n) <= padded(v.filters, tiles.filters)) tiles.filters = n;
  // Rows that several taps see occupy registers, too.
  tiles.vectors = v.Q >= 2 * tiles.vec && tiles.filters == 1 && width == 16 ? 2 : 1;
  const auto reach = std::max<std::int64_t>(v.S - 1, 0) * v.dilation_w / v.step_w + 1;
  tiles.phase = std::max(v.Q, tiles.vec) + reach;
  if (tiles.vectors > 1) tiles.phase = padded(tiles.phase, tiles.vec);  // rows begin with a line
  tiles.direct = is_direct(v, tiles.vec, tiles.filters, width == 16);
  const auto room = static_cast<std::int64_t>(profile.local_mem_size) / size - 256;
  tiles.weights = std::min(kWeights, room / 4);
  tiles.elements = std::min(kElements, room - tiles.weights);
  // Rows that fit L1, but enough that those which two blocks read are few.
  auto rows = std::min<std::int64_t>(v.P, 1 << 12);
  const auto halve = [&] { rows = padded((rows + 1) / 2, rows > kTileRows ? kTileRows : 1); };
  while (rows > 4 * v.R + kTileRows && elements_for(v, tiles, rows) > kNearElements) halve();
  while (rows > 1 && elements_for(v, tiles, rows) > tiles.elements) halve();
  tiles.rows = elements_for(v, tiles, rows) > tiles.elements ? 0 : rows;
  return tiles;
}

std::string cannot(const Planes& v, const ExtendedDeviceProfile& profile, DType dtype) {
  if (v.R * v.S > kMostTaps) return fmt::format("a filter of {} taps is not unrolled", v.R * v.S);
  const auto tiles = tiles_of(v, profile, dtype);
  if (v.channels * tiles.filters * v.R * v.S > tiles.weights)
    return fmt::format("{} taps of a filter exceed the local memory", v.channels * v.R * v.S);
  if (tiles.rows == 0) return "the rows of one tile exceed the local memory";
  return {};
}

void launch(const Planes& v, const OpCall& call, const Epilogue& epilogue) {
  const auto dtype = call.dtype();
  const auto tiles = tiles_of(v, device_profile(call.queue), dtype);
  const bool plain =
      dtype == compute_dtype(dtype) && epilogue.activation == 0 && !epilogue.residual;
  const auto kernel = op_kernel(
      call.queue,
      {kPath,
       "conv2d_planes",
       {bit(dtype), epilogue.bits(), tiles.vec, tiles.vectors, tiles.filters, tiles.elements, v.R,
        v.S, v.step_h, v.step_w, v.dilation_h, v.dilation_w, tiles.direct,
        tiles.direct ? v.inside_left() : 0, tiles.direct ? v.inside_right() : 0}},
      [&] {
        return t_and_acc(dtype) + vector_macros(dtype, tiles.vec) + epilogue.defines() +
               define("FILTER_ROWS", v.R) + define("FILTER_COLUMNS", v.S) +
               define("STEP_H", v.step_h) + define("STEP_W", v.step_w) +
               define("DILATION_H", v.dilation_h) + define("DILATION_W", v.dilation_w) +
               define("TILE_ROWS", kTileRows) + define("FILTERS", tiles.filters) +
               define("VECTORS", tiles.vectors) + define("ELEMENTS", tiles.elements) +
               define("WEIGHTS", tiles.weights) + define("PLAIN", plain) +
               define("DIRECT", tiles.direct) + define("INSIDE_LEFT", v.inside_left()) +
               define("INSIDE_RIGHT", v.inside_right()) + mask_macros(dtype, tiles.vec);
      });
  const Shape8 size{{int32(v.channels), int32(v.filters), int32(v.H), int32(v.W), int32(v.P),
                     int32(v.Q), int32(tiles.rows), int32(tiles.phase)}};
  const Shape4 pad{{int32(v.pad_h), int32(v.pad_w), int32(v.groups), epilogue.has_bias()}};
  Long8 filter;
  std::copy(v.filter.begin(), v.filter.end(), filter.values.begin());
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.inputs[1]).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, call.outputs[0])
      .by_value(&size, sizeof size)
      .by_value(&pad, sizeof pad)
      .by_value(&filter, sizeof filter)
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(ceil_div(v.P, tiles.rows)), v.groups, v.images},
               {1, 1, 1});
}

// ---- y

Planes planes_of(const ConvSizes& s) {
  Planes v;
  v.images = s.N, v.groups = s.groups, v.channels = s.group_channels();
  v.filters = s.group_filters();
  v.H = s.H, v.W = s.W, v.P = s.P, v.Q = s.Q, v.R = s.R, v.S = s.S;
  v.step_h = s.stride_h, v.step_w = s.stride_w, v.pad_h = s.padding_h, v.pad_w = s.padding_w;
  v.dilation_h = s.dilation_h, v.dilation_w = s.dilation_w;
  v.filter = {s.taps(), s.R * s.S, s.S, 1, s.group_filters() * s.taps(), 0};
  return v;
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = sizes_of_forward(call);
  const auto why_not = nothing_to_sum(s);
  return why_not.empty() ? cannot(planes_of(s), profile, call.dtype()) : why_not;
}

void run(const OpCall& call, const VariantRun&) {
  launch(planes_of(sizes_of_forward(call)), call, epilogue_of(call));
}

// ---- dx

// The filter turned around: its last tap is the first that a place of x meets in dy.
Planes planes_of_data(const ConvSizes& s) {
  Planes v;
  v.images = s.N, v.groups = s.groups, v.channels = s.group_filters();
  v.filters = s.group_channels();
  v.H = s.P, v.W = s.Q, v.P = s.H, v.Q = s.W, v.R = s.R, v.S = s.S;
  v.pad_h = (s.R - 1) * s.dilation_h - s.padding_h;
  v.pad_w = (s.S - 1) * s.dilation_w - s.padding_w;
  v.dilation_h = s.dilation_h, v.dilation_w = s.dilation_w;
  v.filter = {s.R * s.S, s.taps(), -s.S, -1, s.group_filters() * s.taps(), s.R * s.S - 1};
  return v;
}

std::string data_declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = sizes_of_data(call);
  if (s.pixels() == 0 || s.K == 0) return "dy is empty";
  if (s.is_strided()) return fmt::format("stride ({}, {}), not 1", s.stride_h, s.stride_w);
  if (s.group_channels() > kFewChannels)
    return fmt::format("{} channels per group are a matrix product", s.group_channels());
  return cannot(planes_of_data(s), profile, call.dtype());
}

void run_data(const OpCall& call, const VariantRun&) {
  launch(planes_of_data(sizes_of_data(call)), call,
         {call.has(2) ? call.inputs[2] : Tensor(), {}, 0});
}

}  // namespace

OpVariant planes_variant() { return {"conv2d.planes", "CONV2D_DEPTHWISE", kPath, declines, run}; }

OpVariant data_planes_variant() {
  return {"conv2d_backward_data.planes", "", kPath, data_declines, run_data};
}

}  // namespace netcl::conv
