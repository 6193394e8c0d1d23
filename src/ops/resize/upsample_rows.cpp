// Resizing on OpenCL CPUs: how the work is shared out, and what the kernels are written for.
#include "ops/image_rows.h"
#include "ops/kernels.h"
#include "ops/resize/upsample.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/resize/upsample_rows.cl";
constexpr std::int64_t kStrip = 512;            // columns of a result
constexpr std::int64_t kSpan = 2 * kStrip + 8;  // columns of a gradient that these may read

// At most so many outputs read `strip` neighbours.
std::int64_t readers(const ResizeAxis& axis, std::int64_t strip) {
  const bool ends_meet = axis.align && axis.from > 1;
  const auto from = ends_meet ? axis.from - 1 : axis.from, to = ends_meet ? axis.to - 1 : axis.to;
  return std::min((strip + 1) * to / from + 2, axis.to);
}

// How many columns a work-item owns; 0 where so many outputs read one that their sums have no room.
std::int64_t strip_of(const ResizeAxis& columns, bool is_backward) {
  if (!is_backward) return std::min(kStrip, columns.to);
  auto strip = std::min(kStrip, columns.from);
  while (strip > 0 && readers(columns, strip) > kSpan) strip /= 2;
  return strip;
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
  const bool wider = !is_backward && columns.to >= columns.from;
  const bool doubled = is_backward && !columns.align && columns.to == 2 * columns.from;
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, is_backward ? "upsample_backward_rows" : "upsample_rows",
                {static_cast<std::int64_t>(dtype), bilinear, columns.align, wider, doubled}),
      [&] {
        return image_row_macros(profile, dtype) + define("BILINEAR", bilinear) +
               define("ALIGN", columns.align) + define("WIDER", wider) +
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
