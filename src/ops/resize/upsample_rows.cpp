// Resizing on OpenCL CPUs: how the work is shared out, and what the kernels are written for.
#include "ops/image_rows.h"
#include "ops/kernels.h"
#include "ops/resize/upsample.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/resize/upsample_rows.cl";
constexpr std::int64_t kStrip = 512;            // columns of a result
constexpr std::int64_t kSpan = 2 * kStrip + 8;  // columns of a gradient that these may read

// Outputs lie `from` / `to` inputs apart.
struct Steps {
  std::int64_t from, to;
  explicit Steps(const ResizeAxis& axis) : from(axis.from), to(axis.to) {
    if (axis.align && axis.from > 1) --from, --to;
  }
};

// At most so many outputs read `strip` neighbours.
std::int64_t readers(const ResizeAxis& axis, std::int64_t strip) {
  const Steps steps(axis);
  return std::min((strip + 1) * steps.to / steps.from + 2, axis.to);
}

// In how many vectors of `lanes` what as many neighbours of the result are made of lies; 0 for more
// than two.
std::int64_t vectors_near(const ResizeAxis& axis, bool is_backward, std::int64_t lanes) {
  const Steps steps(axis);
  const auto step = is_backward ? steps.to : steps.from, of = is_backward ? steps.from : steps.to;
  for (std::int64_t vectors = 1; vectors <= 2; ++vectors)
    if ((lanes - 1) * step <= (vectors * lanes - 1) * of) return vectors;
  return 0;
}

// How many columns a work-item owns; 0 where so many outputs read one that their sums have no room.
std::int64_t strip_of(const ResizeAxis& columns, bool is_backward) {
  if (!is_backward) return std::min(kStrip, columns.to);
  auto strip = std::min(kStrip, columns.from);
  while (strip > 0 && readers(columns, strip) > kSpan) strip /= 2;
  return strip;
}

// At most so many outputs read one input.
std::int64_t taps_of(const ResizeAxis& axis) {
  const Steps steps(axis);
  const auto apart = (axis.bilinear ? 2 : 1) * steps.to;
  return std::max<std::int64_t>(static_cast<std::int64_t>(ceil_div(apart, steps.from)), 1);
}

std::string declines(const OpCall& call, bool bilinear, bool is_backward,
                     const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "rows are for CPUs";
  const auto images = ResizedImages::of(call, bilinear, is_backward);
  if (strip_of(images.columns, is_backward) == 0) return "rows become too much longer";
  return declines_wide_positions(call, profile);
}

void enqueue(const OpCall& call, bool bilinear, bool is_backward) {
  const auto& profile = device_profile(call.queue);
  const auto [planes, rows, columns] = ResizedImages::of(call, bilinear, is_backward);
  const auto dtype = call.dtype();
  const bool doubled = is_backward && !columns.align && columns.to == 2 * columns.from;
  const auto near =
      doubled ? 0 : vectors_near(columns, is_backward, image_row_lanes(profile, dtype));
  // At least one: the other direction has an array of so many, too, which must not be empty.
  const auto taps = is_backward && near > 0 ? taps_of(columns) : 1;
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, is_backward ? "upsample_backward_rows" : "upsample_rows",
                {static_cast<std::int64_t>(dtype), bilinear, columns.align, doubled, near, taps}),
      [&] {
        return image_row_macros(profile, dtype) + define("BILINEAR", bilinear) +
               define("ALIGN", columns.align) + define("NEAR", near) + define("TAPS", taps) +
               define("DOUBLED", doubled) + define("STRIP", kStrip) + define("SPAN", kSpan);
      });
  const auto strip = strip_of(columns, is_backward);
  const auto width = is_backward ? columns.from : columns.to;
  const auto all_rows = planes * (is_backward ? rows.from : rows.to);
  // A row of a gradient costs what it reads.
  const auto cost = is_backward ? readers(columns, strip) * rows.to / rows.from : strip;
  const auto shares = share_image_rows(profile, all_rows, width, strip, cost);
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.outputs[0]);
  for (const auto number :
       {all_rows, rows.from, columns.from, rows.to, columns.to, shares.strip, shares.block})
    args.value(static_cast<std::int32_t>(number));
  args.enqueue(call.queue, kernel, static_cast<std::size_t>(shares.items), 1);
}

}  // namespace

std::string declines_wide_positions(const OpCall& call, const ExtendedDeviceProfile&) {
  // The condition is the same in both directions.
  const auto &x = call.inputs[0].shape(), &y = call.outputs[0].shape();
  const auto fits = [](std::int64_t from, std::int64_t to) {
    return 2 * (from + 2) * (to + 2) <= INT32_MAX;
  };
  const bool all =
      x.numel() <= INT32_MAX && y.numel() <= INT32_MAX && fits(x[2], y[2]) && fits(x[3], y[3]);
  return all ? "" : "positions need 64 bits";
}

OpVariant upsample_rows_variant(bool bilinear, bool is_backward) {
  OpVariant variant{is_backward ? "upsample_backward.rows" : "upsample.rows", "", kPath};
  variant.declines = [=](const OpCall& call, const ExtendedDeviceProfile& profile) {
    return declines(call, bilinear, is_backward, profile);
  };
  variant.run = [=](const OpCall& call, const VariantRun&) {
    enqueue(call, bilinear, is_backward);
  };
  return variant;
}

}  // namespace netcl
