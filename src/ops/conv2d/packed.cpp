// conv2d.packed and conv2d.im2col: the same product, over rows of the image or over its columns.
#include "base/format.h"
#include "ops/conv2d/gemm.h"

namespace netcl::conv {
namespace {

constexpr const char* kPack = "ops/conv2d/pack.cl";
constexpr const char* kPath = "ops/conv2d/packed.cl";
constexpr auto kLongestRow = std::int64_t{1} << 30;

// What conv2d_packed reads: an image (or columns) and the steps through it.
struct Rows {
  Tensor x;
  ConvSizes s;
  Long8 steps;  // image, channel, row, tap down, tap across, pixel, group, has slack
};

struct Packed {
  const OpCall& call;
  Epilogue epilogue;
  std::int64_t vec, vectors, tile_q;

  Packed(const OpCall& c, const VariantRun& with)
      : call(c),
        epilogue(epilogue_of(c)),
        vec(with["VEC"]),
        vectors(with["VECTORS"]),
        tile_q(with["TILE_Q"]) {}

  DType work_dtype() const { return compute_dtype(call.dtype()); }
  std::int64_t tile_k() const { return vec * vectors; }
  KernelPtr kernel() const;
  KernelPtr prepare(const char* name) const {
    return op_kernel(call.queue, {kPack, name, {bit(call.dtype())}},
                     [&] { return t_and_acc(call.dtype()); });
  }
  Tensor packed_filters(const ConvSizes& s) const;
  Rows rows_of_image(const ConvSizes& s) const;
  // Into `y` and from the epilogue's residual, both of the images of `rows`.
  void product(const Rows& rows, const Tensor& filters, const Tensor& y) const;
};

KernelPtr Packed::kernel() const {
  return op_kernel(
      call.queue,
      {kPath, "conv2d_packed", {bit(call.dtype()), epilogue.bits(), vec, vectors, tile_q}}, [&] {
        return t_and_acc(call.dtype()) + epilogue.defines() + define("VEC", vec) +
               define("VECTORS", vectors) + define("TILE_Q", tile_q);
      });
}

Tensor Packed::packed_filters(const ConvSizes& s) const {
  const auto blocks = static_cast<std::int64_t>(ceil_div(s.group_filters(), tile_k()));
  const auto to = Tensor::empty(call.queue, {s.groups * blocks, s.taps(), tile_k()}, work_dtype());
  const auto items = s.groups * blocks * s.taps();
  enqueue_items(call.queue, prepare("conv2d_pack_filters"),
                OpArgs()
                    .tensor(call.inputs[1])
                    .tensor(to)
                    .value(static_cast<std::int32_t>(s.group_filters()))
                    .value(static_cast<std::int32_t>(blocks))
                    .value(static_cast<std::int32_t>(tile_k()))
                    .value(s.taps())
                    .value(items),
                items);
  return to;
}

Long8 steps_through(const ConvSizes& s, std::int64_t height, std::int64_t width, bool slack) {
  const auto plane = height * width;
  return {{s.C * plane, plane, s.stride_h * width, s.dilation_h * width, s.dilation_w, s.stride_w,
           s.group_channels() * plane, slack ? 1 : 0}};
}

// x as it is where no tap leaves it, else a padded copy whose rows hold whole tiles.
Rows Packed::rows_of_image(const ConvSizes& whole) const {
  auto s = whole;
  const auto& x = call.inputs[0];
  // A filter of one tap and one step sees no rows: one long row has fewer ends.
  if (s.is_pointwise() && !s.is_strided() && !s.is_padded()) s.W = s.Q = s.H * s.W, s.H = s.P = 1;
  if (!s.is_padded() && x.dtype() == work_dtype() && s.Q >= tile_q)
    return {x, s, steps_through(s, s.H, s.W, false)};
  const auto height = s.H + 2 * s.padding_h;
  const auto last = static_cast<std::int64_t>(ceil_div(s.Q, tile_q)) * tile_q - 1;
  const auto width =
      std::max(s.W + 2 * s.padding_w, last * s.stride_w + (s.S - 1) * s.dilation_w + 1);
  const auto to = Tensor::empty(call.queue, {s.N, s.C, height, width}, work_dtype());
  const auto geometry = s.geometry();
  // A CPU copies a row per work-item, others an element.
  const auto pad = prepare("conv2d_pad");
  const bool by_rows = device_profile(call.queue).is_cpu;
  const auto group = static_cast<std::int64_t>(clamped_local(pad, by_rows ? 1 : 64));
  const auto rows = s.N * s.C * height;
  OpArgs()
      .tensor(x)
      .tensor(to)
      .by_value(&geometry, sizeof geometry)
      .value(static_cast<std::int32_t>(height))
      .value(static_cast<std::int32_t>(width))
      .value(static_cast<std::int32_t>(by_rows ? width : 1))
      .value(rows)
      .enqueue(call.queue, pad,
               {static_cast<std::int64_t>(rounded_up(by_rows ? 1 : width, group)), rows},
               {group, std::int64_t{1}});
  return {to, s, steps_through(s, height, width, true)};
}

void Packed::product(const Rows& rows, const Tensor& filters, const Tensor& y) const {
  const auto& s = rows.s;
  const auto row_tiles = static_cast<std::int64_t>(ceil_div(s.Q, tile_q));
  // Enough work in an item that starting it does not show, but parts for all cores.
  constexpr std::int64_t kWork = 1 << 18;
  const auto tiles = std::clamp<std::int64_t>(kWork / (s.taps() * tile_q * tile_k()), 1, row_tiles);
  const auto blocks = static_cast<std::int64_t>(ceil_div(s.group_filters(), tile_k()));
  const auto geometry = s.geometry();
  OpArgs args;
  args.tensor(rows.x).tensor(filters).tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, y)
      .by_value(&geometry, sizeof geometry)
      .by_value(&rows.steps, sizeof rows.steps)
      .value(static_cast<std::int32_t>(tiles))
      .value(static_cast<std::int32_t>(s.N * s.P))
      .value(epilogue.has_bias())
      .enqueue(
          call.queue, kernel(),
          {static_cast<std::int64_t>(ceil_div(row_tiles, tiles)), s.N * s.P, s.groups * blocks},
          {1, 1, 1});
}

void run_packed(const OpCall& call, const VariantRun& with) {
  const Packed packed(call, with);
  const auto s = sizes_of_forward(call);
  packed.product(packed.rows_of_image(s), packed.packed_filters(s), call.outputs[0]);
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
  const auto to = Tensor::empty(call.queue, {images, s.C * s.R * s.S, width}, packed.work_dtype());
  const auto geometry = s.geometry();
  enqueue_items(call.queue, packed.prepare("conv2d_im2col"),
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
  return {to, one, steps_through(one, 1, width, true)};
}

void run_im2col(const OpCall& call, const VariantRun& with) {
  const Packed packed(call, with);
  const auto s = sizes_of_forward(call);
  const auto filters = packed.packed_filters(s);
  const auto width = static_cast<std::int64_t>(ceil_div(s.pixels(), packed.tile_q)) * packed.tile_q;
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

// Registers decide: TILE_Q x VECTORS accumulators of VEC lanes.
VariantSpace space(const OpCall& call, const ExtendedDeviceProfile&, const KernelConfig& config) {
  const auto s = sizes_of_forward(call);
  const auto lanes =
      compute_dtype(call.dtype()) == DType::float64 ? config.vector_width / 2 : config.vector_width;
  const std::int64_t vec = std::clamp(lanes, 2, 16);
  // Filters that fill one vector only should not pay for two.
  const std::int64_t vectors = s.group_filters() > vec ? 2 : 1;
  return {{{"VEC", {4, 8, 16}}, {"VECTORS", {1, 2}}, {"TILE_Q", {4, 8, 12}}},
          {{"VEC", vec}, {"VECTORS", vectors}, {"TILE_Q", 8}},
          nullptr,
          {static_cast<std::size_t>(s.group_filters()), static_cast<std::size_t>(s.pixels()),
           static_cast<std::size_t>(s.taps())}};
}

}  // namespace

OpVariant packed_variant() {
  return {"conv2d.packed", "CONV2D_PACKED", kPath, declines, run_packed, space};
}

OpVariant im2col_variant() {
  return {"conv2d.im2col", "CONV2D_IM2COL", kPath, declines, run_im2col, space};
}

}  // namespace netcl::conv
