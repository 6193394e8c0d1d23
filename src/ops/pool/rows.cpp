// Pooling by rows on OpenCL CPUs: adaptive windows, and the gradients of averages.
#include "ops/image_rows.h"
#include "ops/pool/kernels.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/pool/rows.cl";
constexpr std::int64_t kStrip = 512;  // columns of a result
constexpr std::int64_t kSpan = 1024;  // columns of what they are made of

// One window that is all of the image: its rows lie one behind the other.
PoolGeometry joined(PoolGeometry g) {
  if (!g.rows.adaptive() || g.rows.out != 1 || g.columns.out != 1) return g;
  g.columns.in *= std::exchange(g.rows.in, 1);
  return g;
}

// At most so many windows cover a pixel of `strip` neighbours.
std::int64_t covering(const PoolAxis& axis, std::int64_t strip) {
  const auto most = axis.adaptive() ? (strip + 1) * axis.out / axis.in + 2
                                    : (strip + axis.window) / axis.stride + 2;
  return std::min(most, axis.out);
}

// How many columns of a result a work-item owns; 0 where there is no room for what it takes.
std::int64_t strip_of(const PoolAxis& columns, bool is_backward) {
  if (!is_backward) return std::min(kStrip, columns.out);
  auto strip = std::min(kStrip, columns.in);
  while (strip > 0 && covering(columns, strip) > kSpan) strip /= 2;
  return strip;
}

std::string declines(const PoolGeometry& g, bool max, bool is_backward,
                     const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "rows are for CPUs";
  if (max && is_backward) return "maxima have gradients by planes";
  if (!is_backward && !g.rows.adaptive()) return "the windows have one size";
  if (!fits_int(g) || !fits_int(joined(g))) return "positions need 64 bits";
  return strip_of(g.columns, is_backward) == 0 ? "too many windows cover a pixel" : "";
}

void enqueue(const OpCall& call, const PoolGeometry& given, bool max, bool is_backward) {
  const auto& profile = device_profile(call.queue);
  const auto g = joined(given);
  const auto dtype = call.dtype();
  const bool adaptive = g.rows.adaptive(), count_padding = !max && !adaptive && g.count_padding;
  const auto kernel =
      op_kernel(call.queue,
                KernelKey(kPath,
                          is_backward ? "avg_pool_backward_rows"
                          : max       ? "max_pool_rows"
                                      : "avg_pool_rows",
                          {static_cast<std::int64_t>(dtype), adaptive, count_padding, g.rows.window,
                           g.columns.window, g.rows.stride, g.columns.stride}),
                [&] {
                  auto text = image_row_macros(profile, dtype) + define("ADAPTIVE", adaptive) +
                              define("COUNT_PADDING", count_padding) + define("MAX", max) +
                              define("BACKWARD", is_backward) + define("STRIP", kStrip) +
                              define("SPAN", kSpan);
                  if (!adaptive)
                    text += define("KH", g.rows.window) + define("KW", g.columns.window) +
                            define("SH", g.rows.stride) + define("SW", g.columns.stride);
                  return text;
                });
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  for (const auto& output : call.outputs) args.tensor(output);
  const auto strip = strip_of(g.columns, is_backward);
  const auto rows = g.planes * (is_backward ? g.rows.in : g.rows.out);
  const auto width = is_backward ? g.columns.in : g.columns.out;
  const auto windows = covering(g.columns, strip) * covering(g.rows, 1);
  const auto pixels = ceil_div(g.rows.in, g.rows.out) * ceil_div(g.columns.in * strip, width);
  const auto cost = strip + (is_backward ? windows : static_cast<std::int64_t>(pixels));
  const auto shares = share_image_rows(profile, rows, width, strip, cost);
  args.value(static_cast<std::int32_t>(rows));
  const KernelPairs<std::int32_t> pairs(g);
  pairs.add_to(args, {0, 1, 4});  // in, out, padding
  args.value(static_cast<std::int32_t>(shares.strip));
  args.value(static_cast<std::int32_t>(shares.block));
  args.enqueue(call.queue, kernel, static_cast<std::size_t>(shares.items), 1);
}

}  // namespace

OpVariant pool_rows_variant(const std::string& op, bool max, bool is_backward,
                            GeometryOf geometry) {
  OpVariant variant{is_backward ? "pool_backward.rows" : "pool.rows", "", kPath};
  const auto geometry_of = [=](const OpCall& call) {
    return geometry(op.c_str(), call.inputs[0].shape(), call.attributes);
  };
  variant.declines = [=](const OpCall& call, const ExtendedDeviceProfile& profile) {
    return declines(geometry_of(call), max, is_backward, profile);
  };
  variant.run = [=](const OpCall& call, const VariantRun&) {
    enqueue(call, geometry_of(call), max, is_backward);
  };
  return variant;
}

}  // namespace netcl
