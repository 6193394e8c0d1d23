// conv2d.packed and conv2d.im2col: the same product, over rows of the image or over its columns.
#include "base/format.h"
#include "ops/conv2d/gemm.h"
#include "ops/memory_hints.h"
#include "ops/panels.h"

namespace netcl::conv {
namespace {

constexpr const char* kPack = "ops/conv2d/pack.cl";
constexpr const char* kPath = "ops/conv2d/packed.cl";
constexpr auto kLongestRow = std::int64_t{1} << 30;
struct alignas(32) Share {
  std::int64_t filters, panels, taps, strip;
};

// What conv2d_packed reads: an image (or columns) and the steps through it.
struct Rows {
  Tensor x;
  ConvSizes s;
  Long8 steps;  // image, channel, row, tap down, tap across, pixel, group, elements
};

struct Packed {
  const OpCall& call;
  Epilogue epilogue;
  PanelTile tile;

  Packed(const OpCall& c, const VariantRun& with) : call(c), epilogue(epilogue_of(c)), tile(with) {}

  DType work_dtype() const { return compute_dtype(call.dtype()); }
  Rows rows_of_image(const ConvSizes& s) const;
  // Into `y` and from the epilogue's residual, both of the images of `rows`.
  void product(const Rows& rows, const Tensor& filters, const Tensor& y) const;
};

// What it costs to gather a panel, in tiles multiplied with it: short runs are many.
double pack_tiles(const ConvSizes& s, const PanelTile& tile) {
  const auto run = std::min(static_cast<double>(s.Q) / static_cast<double>(tile.width()), 1.0);
  return static_cast<double>(s.stride_w) / run;
}

Long8 steps_through(const ConvSizes& s) {
  const auto plane = s.H * s.W;
  return {{s.C * plane, plane, s.stride_h * s.W, s.dilation_h * s.W, s.dilation_w, s.stride_w,
           s.group_channels() * plane, s.N * s.C * plane}};
}

Rows Packed::rows_of_image(const ConvSizes& whole) const {
  auto s = whole;
  // A filter of one tap and one step sees no rows: one long row has fewer ends.
  if (s.is_pointwise() && !s.is_strided() && !s.is_padded()) s.W = s.Q = s.H * s.W, s.H = s.P = 1;
  return {call.inputs[0], s, steps_through(s)};
}

void Packed::product(const Rows& rows, const Tensor& filters, const Tensor& y) const {
  const auto& s = rows.s;
  const auto& profile = device_profile(call.queue);
  const PanelRoom room(tile, work_dtype(), profile, tile.vec);
  const auto columns = s.N * s.pixels();
  const auto thin = thin_columns(columns, tile.width(), tile.vec);
  const ProductSize size{s.group_filters(), columns - thin, s.taps(), s.groups};
  const auto cut = cut_product(size, tile, room, profile.compute_units, pack_tiles(s, tile));
  const bool own_sums = s.taps() > cut.terms && call.dtype() != work_dtype();
  const bool streams = outgrow_caches(rows.x.nbytes() + y.nbytes(), profile) &&
                       call.dtype() == work_dtype() && s.pixels() % tile.vec == 0;
  const auto kernel = op_kernel(
      call.queue,
      {kPath,
       "conv2d_packed",
       {bit(call.dtype()), epilogue.bits(), tile.bits(), own_sums ? 1 : 0, streams ? 1 : 0}},
      [&] {
        return t_and_acc(call.dtype()) + epilogue.defines() + tile.defines(call.dtype()) +
               room.defines() + define("OWN_SUMS", own_sums ? 1 : 0) +
               define("STREAMS", streams ? 1 : 0);
      });
  const auto geometry = s.geometry();
  const Share share{cut.rows, cut.panels, cut.terms, cut.strip};
  OpArgs args;
  args.tensor(rows.x).tensor(filters).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, y);
  Tensor sums;
  if (own_sums) args.tensor(sums = Tensor::empty(call.queue, y.shape(), work_dtype()));
  args.by_value(&geometry, sizeof geometry)
      .by_value(&rows.steps, sizeof rows.steps)
      .by_value(&share, sizeof share)
      .value(epilogue.has_bias())
      .value(static_cast<std::int32_t>(thin))
      .enqueue(call.queue, kernel, {cut.row_parts(size), cut.column_blocks(size, tile), s.groups},
               {1, 1, 1});
}

void run_packed(const OpCall& call, const VariantRun& with) {
  const Packed packed(call, with);
  const auto s = sizes_of_forward(call);
  packed.product(packed.rows_of_image(s), call.inputs[1].astype(packed.work_dtype()),
                 call.outputs[0]);
}

// ---- im2col

// Images whose columns are kept at a time: as many as stay in a cache that several cores share.
std::int64_t images_per_part(const ConvSizes& s, std::int64_t width, DType dtype) {
  constexpr std::int64_t kBytes = 16 << 20;
  const auto bytes = s.C * s.R * s.S * width * static_cast<std::int64_t>(size_of(dtype));
  return std::clamp<std::int64_t>(kBytes / std::max<std::int64_t>(bytes, 1), 1, s.N);
}

// The columns of one part of the batch, as an image of one row for a 1x1 filter.
Rows columns_of(const Packed& packed, const ConvSizes& s, std::int64_t first, std::int64_t images,
                std::int64_t width) {
  const auto& call = packed.call;
  const auto to = Tensor::empty(call.queue, {images, s.C * s.R * s.S, width}, call.dtype());
  const auto geometry = s.geometry();
  const auto kernel = op_kernel(call.queue, {kPack, "conv2d_im2col", {bit(call.dtype())}},
                                [&] { return t_and_acc(call.dtype()); });
  enqueue_items(call.queue, kernel,
                OpArgs()
                    .tensor(call.inputs[0])
                    .tensor(to)
                    .by_value(&geometry, sizeof geometry)
                    .value(first)
                    .value(width)
                    .value(to.numel()),
                to.numel());
  ConvSizes one;
  one.N = images, one.C = s.C * s.R * s.S, one.K = s.K, one.groups = s.groups;
  one.H = one.P = 1, one.W = one.Q = s.pixels();
  return {to, one, steps_through(one)};
}

void run_im2col(const OpCall& call, const VariantRun& with) {
  const Packed packed(call, with);
  const auto s = sizes_of_forward(call);
  const auto filters = call.inputs[1].astype(packed.work_dtype());
  const auto width = s.pixels();
  const auto part = images_per_part(s, width, packed.work_dtype());
  for (std::int64_t first = 0; first < s.N; first += part) {
    const auto images = std::min(part, s.N - first);
    auto one = packed;
    if (packed.epilogue.residual)
      one.epilogue.residual = packed.epilogue.residual.narrow(0, first, images);
    one.product(columns_of(packed, s, first, images, width), filters,
                call.outputs[0].narrow(0, first, images));
  }
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile&) {
  const auto s = sizes_of_forward(call);
  if (s.H * s.W >= kLongestRow || s.pixels() >= kLongestRow)
    return "an image of 2^30 pixels and more does not fit one row";
  return nothing_to_sum(s);
}

}  // namespace

VariantSpace packed_space(const OpCall& call, const ExtendedDeviceProfile&,
                          const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  auto space =
      panel_space(config, call.dtype(), s.N * s.pixels(),
                  {static_cast<std::size_t>(s.group_filters()),
                   static_cast<std::size_t>(s.pixels()), static_cast<std::size_t>(s.taps())});
  choose_shape(space.defaults, config, s.group_filters(), s.N * s.pixels());
  return space;
}

OpVariant packed_variant() {
  return {"conv2d.packed", "CONV2D_PACKED", kPath, declines, run_packed, packed_space};
}

OpVariant im2col_variant() {
  return {"conv2d.im2col", "CONV2D_IM2COL", kPath, declines, run_im2col, packed_space};
}

}  // namespace netcl::conv
