// Constant padding: on CPUs row by row, elsewhere the border value everywhere, then the input
// copied into its place: two passes over the memory, but no kernel of its own for any rank and
// dtype.
#include <cstring>

#include "base/check.h"
#include "base/parallel.h"
#include "netcl/ops.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/memory_hints.h"
#include "ops/resize/resize.h"
#include "ops/vector_lanes.h"
#include "tensor/convert.h"
#include "tensor/kernels.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr const char* kRowsPath = "ops/resize/pad_rows.cl";

std::int64_t before(const Attributes& attributes, std::size_t axis) {
  return attributes.integers("padding")[2 * axis];
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  const auto& padding = spec.attributes.integers("padding");
  const auto& shape = spec.shape(0);
  if (static_cast<std::int64_t>(padding.size()) != 2 * shape.rank())
    fail<ShapeError>("[pad] there must be a pair (before, after) per axis of {}: {} numbers",
                     shape.to_string(), padding.size());
  auto sizes = shape.sizes();
  for (std::size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 0)
      fail<ShapeError>("[pad] padding must not be negative (use narrow): ({})",
                       join(padding, ", "));
    check<ShapeError>(!__builtin_add_overflow(sizes[i / 2], padding[i], &sizes[i / 2]),
                      "[pad] sizes must fit in 63 bits: padding {}", padding[i]);
  }
  return {{Shape(std::move(sizes)), spec.dtype()}};
}

void reference(RefCall& call) {
  const auto& x = call.inputs[0];
  auto& y = call.outputs[0];
  std::fill(y.values.begin(), y.values.end(), call.attributes.number("value"));
  for_each_element(x.shape, [&](Coordinates at, std::size_t flat) {
    for (std::size_t axis = 0; axis < at.size(); ++axis) at[axis] += before(call.attributes, axis);
    y.values[flat_position(y.shape, at)] = x.values[flat];
  });
}

void fill_and_copy(const OpCall& call) {
  const auto& x = call.inputs[0];
  auto inside = call.outputs[0];
  if (inside.numel() != x.numel()) ops::fill_(inside, call.attributes.number("value"));
  for (std::int64_t axis = 0; axis < x.ndim(); ++axis)
    inside = inside.narrow(axis, before(call.attributes, static_cast<std::size_t>(axis)),
                           x.shape()[axis]);
  if (x.numel() > 0) inside.copy_from(x);
}

// The rows of y, and where x has some: axes without a border of their own are part of the next
// outer one. Innermost first; the first is the one along which a row runs.
struct PaddedRows {
  struct Axis {
    std::int64_t size, before, inside;
  };
  std::vector<Axis> axes;
  std::int64_t rows = 1;  // of y

  PaddedRows(const Shape& x, const Shape& y, const Attributes& attributes) {
    for (std::int64_t i = x.rank(); i-- > 0;) {
      const Axis axis{y[i], before(attributes, static_cast<std::size_t>(i)), x[i]};
      if (!axes.empty() && axes.back().size == axes.back().inside) {
        const auto step = axes.back().size;
        axes.back() = {axis.size * step, axis.before * step, axis.inside * step};
      } else {
        axes.push_back(axis);
      }
    }
    while (axes.size() < 2) axes.push_back({1, 0, 1});
    for (std::size_t i = 1; i < axes.size(); ++i) rows *= axes[i].size;
  }
};

constexpr std::size_t kMostAxes = 8;
// Elements of a work-item: a start costs less than the least, and the most leaves enough of them
// for all cores to end together.
constexpr std::int64_t kLeastPart = 4096, kMostPart = 16384, kPartsPerUnit = 8;

std::uint64_t bits_of(double value, DType dtype) {
  std::uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>(T) {
    const auto element = convert_element<T>(value);
    std::memcpy(&bits, &element, sizeof element);
  });
  return bits;
}

// On the CPU backend.
void pad_on_host(const OpCall& call) {
  const auto &x = call.inputs[0], &y = call.outputs[0];
  if (x.numel() == 0 || !x.is_contiguous()) return fill_and_copy(call);
  const PaddedRows rows(x.shape(), y.shape(), call.attributes);
  const auto [width, left, inner] = rows.axes[0];
  visit_dtype(x.dtype(), [&, width = width, left = left, inner = inner]<class T>(T) {
    const auto value = convert_element<T>(call.attributes.number("value"));
    const auto* from = static_cast<const T*>(x.host_data());
    auto* to = static_cast<T*>(y.host_data());
    parallel_for(rows.rows, 1 + kMostPart / width, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row) {
        auto rest = row;
        std::int64_t source = 0, step = inner;
        bool is_x = true;
        for (std::size_t i = 1; i < rows.axes.size(); ++i) {
          const auto& axis = rows.axes[i];
          const auto place = rest % axis.size - axis.before;
          rest /= axis.size;
          is_x &= place >= 0 && place < axis.inside;
          source += place * step;
          step *= axis.inside;
        }
        auto* line = to + row * width;
        if (!is_x) {
          std::fill_n(line, width, value);
          continue;
        }
        std::fill_n(line, left, value);
        std::copy_n(from + source, inner, line + left);
        std::fill_n(line + left + inner, width - left - inner, value);
      }
    });
  });
}

std::string declines_rows(const OpCall& call, const ExtendedDeviceProfile& profile) {
  const auto &x = call.inputs[0], &y = call.outputs[0];
  if (!profile.is_cpu) return "work-items that own many rows are for CPUs";
  if (x.numel() == 0 || !x.is_contiguous()) return "x must be contiguous and have elements";
  const PaddedRows rows(x.shape(), y.shape(), call.attributes);
  if (rows.axes.size() > kMostAxes) return "more axes with borders than a kernel takes";
  const auto bytes = rows.axes[0].size * static_cast<std::int64_t>(size_of(x.dtype()));
  if (bytes > INT32_MAX) return "rows must have less than 2^31 bytes";
  // A row is the work of one core.
  return rows.rows < kPartsPerUnit && y.numel() > kMostPart ? "few long rows" : "";
}

void enqueue_rows(const OpCall& call) {
  const auto &x = call.inputs[0], &y = call.outputs[0];
  const auto& profile = device_profile(call.queue);
  const PaddedRows rows(x.shape(), y.shape(), call.attributes);
  const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
  const auto longest = vector_lanes(profile, 64, DType::uint8);
  const auto lanes = std::min<std::int64_t>(longest / size, 16);
  const auto outer = static_cast<std::int64_t>(rows.axes.size()) - 1;
  const bool streams = outgrow_caches(x.nbytes() + y.nbytes(), profile);
  const auto kernel =
      op_kernel(call.queue, KernelKey(kRowsPath, "pad_rows", {size, longest, outer, streams}), [&] {
        return define("T", opaque_type(x.dtype())) + define("LANES", lanes) +
               define("AXES", outer) + define("LONGEST", longest) + define("STREAMS", streams);
      });
  const auto units = std::max<std::int64_t>(profile.compute_units, 1);
  const auto part = std::clamp(y.numel() / (kPartsPerUnit * units), kLeastPart, kMostPart);
  const auto width = rows.axes[0].size;
  const auto per_item = std::max<std::int64_t>(part / width, 1);
  Long8 sizes, before, inside;
  for (std::size_t i = 1; i < rows.axes.size(); ++i) {
    sizes.values[i - 1] = rows.axes[i].size;
    before.values[i - 1] = rows.axes[i].before;
    inside.values[i - 1] = rows.axes[i].inside;
  }
  OpArgs()
      .tensor(x)
      .tensor(y)
      .value(static_cast<std::uint64_t>(rows.rows))
      .value(static_cast<std::uint64_t>(per_item))
      .value(bits_of(call.attributes.number("value"), x.dtype()))
      .value(rows.axes[0].before)
      .value(rows.axes[0].inside)
      .value(width)
      .by_value(sizes.values.data(), sizeof sizes.values)
      .by_value(before.values.data(), sizeof before.values)
      .by_value(inside.values.data(), sizeof inside.values)
      .enqueue(call.queue, kernel, WorkSize(ceil_div(rows.rows, per_item)), WorkSize(1));
}

std::vector<Tensor> backward(const OpGradient& g) {
  if (!g.wants(0) || !g.dy()) return {Tensor()};
  Tensor dx = g.dy();
  const auto& shape = g.inputs[0].shape();
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    if (dx.shape()[axis] != shape[axis])
      dx = apply("narrow", {dx},
                 {{"axis", axis},
                  {"start", before(g.attributes, static_cast<std::size_t>(axis))},
                  {"length", shape[axis]}});
  return {dx};
}

std::vector<OpSample> samples() {
  struct Row {
    Sizes shape, padding;
    double value;
  };
  const Row rows[] = {{{}, {}, 1},
                      {{5}, {0, 0}, 0},
                      {{5}, {2, 0}, 1},
                      {{5}, {0, 3}, -2},
                      {{5}, {1, 4}, 7},
                      {{0}, {2, 1}, 3},
                      {{0}, {0, 0}, 3},
                      {{1}, {1, 1}, 0},
                      {{3, 4}, {0, 0, 1, 2}, 0},
                      {{3, 4}, {1, 2, 0, 0}, 5},
                      {{3, 4}, {1, 2, 3, 4}, 9},
                      {{0, 4}, {1, 0, 0, 1}, 2},
                      {{2, 3, 5}, {1, 1, 1, 1, 1, 1}, -1},
                      {{2, 3, 5}, {0, 0, 2, 0, 0, 1}, 0},
                      {{2, 3, 5, 7}, {0, 0, 0, 0, 1, 1, 1, 1}, 0},
                      {{2, 3, 5, 7}, {0, 1, 1, 0, 2, 1, 0, 3}, 4},
                      {{1, 2, 1, 2, 1, 2}, {1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}, 1},
                      {{17, 19}, {3, 5, 7, 11}, 2},
                      {{64, 33}, {0, 1, 0, 31}, 0},
                      {{17}, {15, 16}, 1},
                      {{257}, {1, 0}, 0},
                      {{1, 1}, {1, 0, 0, 1}, 3},
                      {{31, 2}, {1, 0, 1, 0}, 0},
                      {{65, 1}, {0, 0, 7, 8}, 1},
                      {{16, 16}, {1, 1, 1, 1}, 0},
                      {{3, 0}, {0, 2, 1, 1}, 6},
                      {{3, 0}, {0, 0, 0, 0}, 1},
                      {{2, 1, 3}, {0, 0, 0, 3, 0, 0}, 2},
                      {{2, 3, 5, 7}, {1, 0, 0, 0, 0, 0, 0, 0}, 8},
                      {{1, 2, 3, 4, 5}, {0, 1, 0, 0, 1, 0, 0, 0, 2, 0}, -3},
                      {{4, 3, 29, 31}, {0, 0, 0, 0, 1, 1, 1, 1}, 1},
                      {{3, 2, 40, 67}, {1, 0, 0, 2, 3, 5, 70, 2}, -1},
                      {{3, 5, 9000}, {1, 1, 2, 0, 100, 3}, 2},
                      {{6, 40, 50}, {0, 0, 2, 1, 0, 0}, 3},
                      {{5, 2, 3, 7, 9, 11}, {1, 0, 0, 1, 1, 0, 2, 0, 0, 3, 1, 1}, 4}};
  std::vector<OpSample> all;
  constexpr std::int64_t kManyForGradients = 2000;
  for (const auto& row : rows) {
    all.push_back(
        {fmt::format("{}_by_{}_with_{}", row.shape.empty() ? "scalar" : join(row.shape, "x"),
                     row.padding.empty() ? "none" : join(row.padding, "_"), row.value),
         {{Shape(row.shape), Fill::distinct, -100, 100}},
         {{"padding", row.padding}, {"value", row.value}}});
    all.back().gradient = Shape(row.shape).numel() < kManyForGradients;
  }
  all.push_back({"special",
                 {{{67}, Fill::special}},
                 {{"padding", Sizes{3, 2}}, {"value", 1.0}},
                 false,
                 kFloats});
  return all;
}

}  // namespace

OpDef pad_op() {
  OpDef op;
  op.name = "pad";
  op.summary = "a border of one value around the array";
  op.dtypes = kFloatsAndInts;
  op.dtypes.push_back(DType::boolean);
  op.infer = infer;
  op.reference = reference;
  op.host = pad_on_host;
  op.variants = {{.name = "pad.rows",
                  .kernel = "",
                  .path = kRowsPath,
                  .declines = declines_rows,
                  .run = [](const OpCall& call, const VariantRun&) { enqueue_rows(call); }},
                 {.name = "pad.fill_and_copy",
                  .kernel = "",
                  .run = [](const OpCall& call, const VariantRun&) { fill_and_copy(call); }}};
  op.backward = backward;
  op.saves = SavedTensors::always(0, 0);
  op.samples = samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "nothing is computed";
  op.takes_views = true;
  return op;
}

}  // namespace netcl
