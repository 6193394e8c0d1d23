// How weights_planes.cl is launched.
#include "base/format.h"
#include "ops/conv2d/launch.h"
#include "ops/conv2d/planes.h"
#include "ops/vector_lanes.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/weights_planes.cl";
constexpr std::int64_t kMostTaps = 64;           // that are unrolled
constexpr std::int64_t kDirectTaps = 12;         // whose sums and pixels fit 32 registers
constexpr std::int64_t kElements = 1 << 14;      // of local memory for each of x and dy at most
constexpr std::int64_t kNearElements = 1 << 12;  // what stays in L1
constexpr std::int64_t kUnits = 8;               // work-groups per core: they do not run evenly

struct Rows {
  std::int64_t vec = 0, phase = 0, dy_pitch = 0, block = 0, tap_rows = 1, elements = 0;
  bool direct = false;  // rows are read where they lie

  std::int64_t x_elements(const ConvSizes& s, std::int64_t rows) const {
    const auto height = (rows - 1) * s.stride_h + (s.R - 1) * s.dilation_h + 1;
    return height * s.stride_w * phase;
  }
  bool fits(const ConvSizes& s, std::int64_t rows, std::int64_t limit) const {
    return x_elements(s, rows) <= limit && rows * dy_pitch <= limit;
  }
};

ConvSizes sizes_of(const OpCall& call) {
  return weights_sizes("conv2d_backward_weights", call.inputs[0].shape(), call.inputs[1].shape(),
                       call.attributes);
}

Rows rows_of(const ConvSizes& s, const ExtendedDeviceProfile& profile, DType dtype) {
  const auto width = detail::vector_unit_floats(profile);
  const auto size = static_cast<std::int64_t>(size_of(compute_dtype(dtype)));
  Rows rows;
  rows.vec = unit_lanes(profile, compute_dtype(dtype));
  rows.dy_pitch = static_cast<std::int64_t>(ceil_div(s.Q, rows.vec)) * rows.vec;
  rows.phase = rows.dy_pitch + (s.S - 1) * s.dilation_w / s.stride_w + 1;
  rows.elements =
      std::min(kElements, static_cast<std::int64_t>(profile.local_mem_size) / size / 2 - 64);
  const std::int64_t registers = width == 16 ? 25 : 10;
  for (std::int64_t n = 1; n <= s.R && n * s.S <= registers; ++n)
    if (s.R % n == 0) rows.tap_rows = n;
  // The sums and all that they see stay in registers.
  rows.direct = !s.is_strided() && s.dilation_h == 1 && s.Q >= rows.vec && width == 16 &&
                s.R * s.S <= kDirectTaps;
  rows.block = std::min<std::int64_t>(s.P, 1 << 12);
  while (rows.block > 4 * s.R && !rows.fits(s, rows.block, kNearElements))
    rows.block = static_cast<std::int64_t>(ceil_div(ceil_div(rows.block, 2), 4)) * 4;
  while (rows.block > 0 && !rows.fits(s, rows.block, rows.elements)) rows.block /= 2;
  return rows;
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = sizes_of(call);
  if (s.N * s.pixels() == 0) return "dy is empty";
  if (s.R * s.S > kMostTaps) return fmt::format("a filter of {} taps is not unrolled", s.R * s.S);
  if (s.groups == 1 || s.group_filters() >= 4)
    return fmt::format("{} filters per group fill vectors", s.group_filters());
  if (rows_of(s, profile, call.dtype()).block == 0) return "a row exceeds the local memory";
  return {};
}

KernelPtr kernel_of(const OpCall& call, const ConvSizes& s, const Rows& rows) {
  const auto dtype = call.dtype();
  return op_kernel(
      call.queue,
      {kPath,
       "weights_planes",
       {bit(dtype), rows.vec, s.Q >= rows.vec, rows.tap_rows, rows.elements, s.R, s.S, s.stride_h,
        s.stride_w, s.dilation_h, s.dilation_w, rows.direct, rows.direct ? s.padding_w : 0,
        rows.direct ? s.padding_w + s.W - s.Q : 0}},
      [&] {
        return t_and_acc(dtype) + vector_macros(dtype, rows.vec) + mask_macros(dtype, rows.vec) +
               define("DIRECT", rows.direct) + define("INSIDE_LEFT", s.padding_w) +
               define("INSIDE_RIGHT", s.padding_w + s.W - s.Q) + define("FILTER_ROWS", s.R) +
               define("FILTER_COLUMNS", s.S) + define("TAP_ROWS", rows.tap_rows) +
               define("WIDE", s.Q >= rows.vec) + define("STEP_H", s.stride_h) +
               define("STEP_W", s.stride_w) + define("DILATION_H", s.dilation_h) +
               define("DILATION_W", s.dilation_w) + define("X_ELEMENTS", rows.elements) +
               define("DY_ELEMENTS", rows.elements);
      });
}

void run(const OpCall& call, const VariantRun&) {
  const auto s = sizes_of(call);
  const auto& profile = device_profile(call.queue);
  const auto rows = rows_of(s, profile, call.dtype());
  const auto wanted = kUnits * static_cast<std::int64_t>(profile.compute_units);
  const auto& dw = call.outputs[0];
  const auto parts = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(ceil_div(wanted, s.K * s.group_channels())), 1, s.N);
  const auto sums =
      parts == 1 ? Tensor()
                 : Tensor::empty(call.queue, {parts, dw.numel()}, compute_dtype(call.dtype()));
  const auto geometry = s.geometry();
  OpArgs()
      .tensor(call.inputs[0])
      .tensor(call.inputs[1])
      .tensor(dw)
      .tensor(parts == 1 ? dw : sums)
      .by_value(&geometry, sizeof geometry)
      .value(static_cast<std::int32_t>(parts))
      .value(static_cast<std::int32_t>(rows.block))
      .value(static_cast<std::int32_t>(rows.phase))
      .enqueue(call.queue, kernel_of(call, s, rows), {parts, s.K, s.group_channels()}, {1, 1, 1});
  if (parts == 1) return;
  const auto kernel =
      op_kernel(call.queue, {"ops/conv2d/backward.cl", "sum_parts", {bit(call.dtype())}},
                [&] { return t_and_acc(call.dtype()); });
  enqueue_items(call.queue, kernel, OpArgs().tensor(sums).tensor(dw).value(parts).value(dw.numel()),
                dw.numel());
}

}  // namespace

OpVariant weights_planes_variant() {
  return {"conv2d_backward_weights.planes", "", kPath, declines, run};
}

}  // namespace netcl::conv
