// conv2d.taps: the product of conv2d.packed where a block of rows of x fits the core's cache as it
// is.
#include "base/format.h"
#include "ops/conv2d/gemm.h"
#include "ops/memory_hints.h"
#include "ops/panels.h"
#include "ops/vector_lanes.h"

namespace netcl::conv {
namespace {

constexpr const char* kPath = "ops/conv2d/taps.cl";
constexpr std::int64_t kMostTaps = 512;  // more channels are a matrix product
constexpr std::int64_t kMostRows = 64;   // of a block
constexpr double kFullLanes = 0.85;      // of the vectors of a row: fewer, and packing costs less

struct alignas(16) Cut {
  std::array<std::int32_t, 4> values{};
};

struct Blocks {
  std::int64_t rows = 0, phase = 0;

  std::int64_t channel(const ConvSizes& s) const {
    return ((rows - 1) * s.stride_h + (s.R - 1) * s.dilation_h + 1) * s.stride_w * phase;
  }
};

std::int64_t vectors_of(const ConvSizes& s, std::int64_t vec) {
  return static_cast<std::int64_t>(ceil_div(s.Q, vec));
}

// The rows of a block with which the cores are done first: many blocks copy rows twice, few leave
// cores without work. 0 where not even one row fits.
Blocks blocks_of(const ConvSizes& s, const PanelTile& tile, const ExtendedDeviceProfile& profile,
                 DType work) {
  Blocks best, one;
  one.phase = s.Q + (s.S - 1) * s.dilation_w / s.stride_w + 1;
  double least = 0;
  for (one.rows = 1; one.rows <= std::min(kMostRows, s.P); ++one.rows) {
    if (s.group_channels() * one.channel(s) > near_elements(profile, work)) break;
    const auto tiles = ceil_div(one.rows * vectors_of(s, tile.vec), tile.nv) *
                       ceil_div(s.group_filters(), tile.mr);
    const double product =
        static_cast<double>(tiles) * static_cast<double>(tile.mr * tile.nv * s.taps());
    const double copy = static_cast<double>(s.group_channels() * one.channel(s)) * kCopyCycles /
                        static_cast<double>(tile.vec);
    const auto items = s.N * s.groups * static_cast<std::int64_t>(ceil_div(s.P, one.rows));
    const double cycles = cycles_of_items(product + copy, items, profile);
    if (best.rows == 0 || cycles < least) best = one, least = cycles;
  }
  return best;
}

void run(const OpCall& call, const VariantRun& with) {
  const auto s = sizes_of_forward(call);
  const auto dtype = call.dtype(), work = compute_dtype(dtype);
  const auto& profile = device_profile(call.queue);
  const auto epilogue = epilogue_of(call);
  const PanelTile tile(with);
  const auto blocks = blocks_of(s, tile, profile, work);
  const auto& y = call.outputs[0];
  const bool streams = outgrow_caches(call.inputs[0].nbytes() + y.nbytes(), profile) &&
                       dtype == work && s.Q % tile.vec == 0;
  const auto kernel = op_kernel(
      call.queue,
      {kPath,
       "conv2d_taps",
       {bit(dtype), epilogue.bits(), tile.bits(), s.stride_w, streams ? 1 : 0}},
      [&] {
        return t_and_acc(dtype) + epilogue.defines() + tile.defines(dtype) +
               define("STEP_W", s.stride_w) + define("ELEMENTS", near_elements(profile, work)) +
               define("MOST_TAPS", kMostTaps) + define("STREAMS", streams ? 1 : 0);
      });
  const auto geometry = s.geometry();
  const Cut cut{{static_cast<std::int32_t>(blocks.rows), static_cast<std::int32_t>(blocks.phase),
                 static_cast<std::int32_t>(blocks.channel(s)), 0}};
  OpArgs args;
  args.tensor(call.inputs[0])
      .tensor(call.inputs[1].astype(work))
      .tensor(epilogue.bias_or(call.inputs[1]));
  epilogue.add_results(args, y)
      .by_value(&geometry, sizeof geometry)
      .by_value(&cut, sizeof cut)
      .value(epilogue.has_bias())
      .enqueue(call.queue, kernel,
               {static_cast<std::int64_t>(ceil_div(s.P, blocks.rows)), s.groups, s.N}, {1, 1, 1});
}

std::string declines(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "not a CPU: a work-group would be one work-item";
  const auto s = sizes_of_forward(call);
  if (const auto why_not = nothing_to_sum(s); !why_not.empty()) return why_not;
  if (s.is_pointwise()) return "the pixels of a 1x1 filter are a panel as they are";
  if (s.taps() > kMostTaps) return fmt::format("{} taps are a matrix product", s.taps());
  const auto vec = unit_lanes(profile, compute_dtype(call.dtype()));
  const auto lanes = rounded_up(s.Q, vec);
  if (s.Q < vec || static_cast<double>(s.Q) < kFullLanes * static_cast<double>(lanes))
    return fmt::format("rows of {} results leave lanes empty", s.Q);
  if (blocks_of(s, {8, 3, vec}, profile, compute_dtype(call.dtype())).rows == 0)
    return "the rows that a row of results sees exceed the local memory";
  return {};
}

}  // namespace

OpVariant taps_variant() {
  return {"conv2d.taps", "CONV2D_PACKED", kPath, declines, run, packed_space};
}

}  // namespace netcl::conv
