// Nearest and bilinear resizing of images, with the conventions of PyTorch's interpolate.
#include "ops/resize/upsample.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/resize/resize.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr const char* kPath = "ops/resize/upsample.cl";

const char* name_of_op(bool bilinear) {
  return bilinear ? "upsample_bilinear" : "upsample_nearest";
}

// The shape with other sizes of the last two axes; `attribute` has them.
std::vector<TensorSpec> infer(const OpSpec& spec, const char* attribute) {
  const auto& shape = spec.shape(0);
  const auto& size = spec.attributes.integers(attribute);
  if (shape.rank() != 4)
    fail<ShapeError>("[{}] images must be (N, C, H, W): {}", spec.op.name, shape.to_string());
  check<DtypeError>(is_floating(spec.dtype()) && spec.dtype() != DType::bfloat16,
                    "[{}] the dtype must be float16, float32 or float64: {}", spec.op.name,
                    name_of(spec.dtype()));
  check<ShapeError>(size.size() == 2 && size[0] > 0 && size[1] > 0,
                    "[{}] the size must be two positive numbers: ({})", spec.op.name,
                    join(size, ", "));
  if (shape[2] == 0 || shape[3] == 0)
    fail<ShapeError>("[{}] an image must have at least one pixel: {}", spec.op.name,
                     shape.to_string());
  check<ShapeError>(std::max({shape[2], shape[3], size[0], size[1]}) < (std::int64_t{1} << 30),
                    "[{}] heights and widths must be below 2^30: ({}, {}) to ({}, {})",
                    spec.op.name, shape[2], shape[3], size[0], size[1]);
  return {{Shape{shape[0], shape[1], size[0], size[1]}, spec.dtype()}};
}

// ---- reference: the usual formulas. Positions are long doubles: a weight is the small difference
// of two of them, and in doubles its error would be larger than that of what is tested.

// Calls f(input, weight) for what output `o` reads.
template <class F>
void for_sources(long double o, long double from, long double to, bool bilinear, bool align,
                 F&& f) {
  if (!bilinear) return f(static_cast<std::int64_t>(std::floor(o * from / to)), 1.0);
  const long double source = align ? (to > 1 ? o * (from - 1) / (to - 1) : 0)
                                   : std::max((o + 0.5L) * from / to - 0.5L, 0.0L);
  const auto low = std::min(std::floor(source), from - 1), high = std::min(low + 1, from - 1);
  f(static_cast<std::int64_t>(low), static_cast<double>(1 - (source - low)));
  f(static_cast<std::int64_t>(high), static_cast<double>(source - low));
}

// Calls f(position in x, position in y, weight) for all pairs of elements.
template <class F>
void for_pairs(const Shape& x, const Shape& y, bool bilinear, bool align, F&& f) {
  const auto size = [](std::int64_t n) { return static_cast<long double>(n); };
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (std::int64_t oh = 0; oh < y[2]; ++oh)
      for (std::int64_t ow = 0; ow < y[3]; ++ow)
        for_sources(size(oh), size(x[2]), size(y[2]), bilinear, align, [&](auto h, double a) {
          for_sources(size(ow), size(x[3]), size(y[3]), bilinear, align, [&](auto w, double b) {
            f(static_cast<std::size_t>((plane * x[2] + h) * x[3] + w),
              static_cast<std::size_t>((plane * y[2] + oh) * y[3] + ow), a * b);
          });
        });
}

void reference(RefCall& call, bool bilinear) {
  const auto& x = call.inputs[0];
  auto& y = call.outputs[0];
  for_pairs(x.shape, y.shape, bilinear, is_aligned(bilinear, call.attributes),
            [&](std::size_t from, std::size_t to, double weight) {
              y.values[to] += weight * x.values[from];
            });
}

void reference_backward(RefCall& call, bool bilinear) {
  const auto& dy = call.inputs[0];
  auto& dx = call.outputs[0];
  for_pairs(dx.shape, dy.shape, bilinear, is_aligned(bilinear, call.attributes),
            [&](std::size_t from, std::size_t to, double weight) {
              dx.values[from] += weight * dy.values[to];
            });
}

// ---- OpenCL

void enqueue(const OpCall& call, bool bilinear, bool is_backward, bool narrow) {
  const auto &in = call.inputs[0], &out = call.outputs[0];
  const auto &x = (is_backward ? out : in).shape(), &y = (is_backward ? in : out).shape();
  const bool align = is_aligned(bilinear, call.attributes);
  const auto dtype = call.dtype();
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, is_backward ? "upsample_backward" : "upsample_forward",
                {static_cast<std::int64_t>(dtype), bilinear, align, narrow}),
      [&] {
        return t_and_acc(dtype) + define("BILINEAR", bilinear) + define("ALIGN", align) +
               define("POS", narrow ? "int" : "long") + define("UPOS", narrow ? "uint" : "ulong");
      });
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs args;
  args.tensor(in).tensor(out).value(static_cast<std::uint64_t>(out.numel()));
  for (const auto size : {x[2], x[3], y[2], y[3]})
    narrow ? args.value(static_cast<std::int32_t>(size)) : args.value(size);
  args.enqueue(call.queue, kernel, WorkSize(rounded_up(out.numel(), local)), WorkSize(local));
}

// ---- samples

std::vector<OpSample> samples(bool bilinear, bool is_backward) {
  struct Row {
    Sizes x, size;
  };
  std::vector<Row> rows = {
      {{1, 1, 1, 1}, {1, 1}},     {{1, 1, 1, 1}, {3, 2}},      {{1, 1, 2, 2}, {4, 4}},
      {{2, 3, 4, 5}, {8, 10}},    {{2, 3, 4, 5}, {4, 5}},      {{2, 3, 4, 5}, {7, 11}},
      {{1, 2, 8, 8}, {3, 5}},     {{1, 2, 8, 8}, {1, 1}},      {{1, 2, 7, 1}, {3, 9}},
      {{1, 2, 1, 7}, {9, 3}},     {{3, 1, 13, 17}, {26, 34}},  {{1, 1, 17, 13}, {5, 31}},
      {{0, 3, 4, 4}, {8, 8}},     {{2, 0, 4, 4}, {8, 8}},      {{1, 3, 33, 31}, {65, 29}},
      {{1, 1, 3, 100}, {100, 3}}, {{1, 1, 2, 2}, {3, 3}},      {{1, 1, 3, 3}, {2, 2}},
      {{1, 1, 5, 1}, {1, 5}},     {{1, 3, 7, 7}, {15, 13}},    {{2, 1, 15, 16}, {17, 31}},
      {{1, 2, 16, 15}, {8, 5}},   {{1, 1, 1, 33}, {1, 65}},    {{1, 1, 65, 1}, {33, 1}},
      {{1, 17, 2, 3}, {4, 3}},    {{5, 3, 2, 2}, {2, 5}},      {{1, 1, 3, 5}, {9, 5}},
      {{1, 1, 5, 3}, {5, 12}},    {{1, 2, 6, 6}, {2, 3}},      {{0, 0, 2, 2}, {3, 3}},
      {{1, 1, 2, 257}, {3, 17}},  {{3, 2, 4, 4}, {16, 1}},     {{1, 1, 3, 700}, {6, 1400}},
      {{1, 1, 2, 700}, {3, 801}}, {{1, 1, 2, 1300}, {2, 700}}, {{1, 1, 2, 3}, {2, 1900}},
      {{6, 3, 9, 20}, {18, 40}}};
  std::vector<OpSample> all;
  for (const auto& row : rows)
    for (int align = 0; align <= (bilinear ? 1 : 0); ++align) {
      const Sizes out = {row.x[0], row.x[1], row.size[0], row.size[1]};
      OpSample sample{
          fmt::format("{}_to_{}{}", join(row.x, "x"), join(row.size, "x"), align ? "_aligned" : ""),
          {{Shape(is_backward ? out : row.x), Fill::distinct, -1, 1}}};
      sample.attributes.set("size", is_backward ? Sizes{row.x[2], row.x[3]} : row.size);
      if (bilinear) sample.attributes.set("align_corners", align != 0);
      all.push_back(std::move(sample));
    }
  if (is_backward) return all;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {1, 2,  kInfinity, 3,  4,  5, 6, 7, NAN, 8,
                                      9, 10, 0,         -1, -2, 3, 5, 7, 9,   -kInfinity};
  for (const Sizes& size : {Sizes{26, 34}, Sizes{17, 21}, Sizes{5, 7}}) {
    OpSample sample{fmt::format("special_to_{}", join(size, "x")),
                    {{{1, 2, 13, 17}, Fill::values, 0, 0, {}, values}}};
    sample.gradient = false;
    sample.dtypes = kFloats;
    sample.attributes.set("size", size);
    if (bilinear) sample.attributes.set("align_corners", false);
    all.push_back(std::move(sample));
  }
  return all;
}

OpDef make(bool bilinear, bool is_backward) {
  OpDef op;
  op.name = std::string(name_of_op(bilinear)) + (is_backward ? "_backward" : "");
  op.dtypes = kFloats;
  op.infer = [](const OpSpec& spec) { return infer(spec, "size"); };
  op.host = [=](const OpCall& call) { host_upsample(call, bilinear, is_backward); };
  op.variants = {upsample_rows_variant(bilinear, is_backward),
                 {.name = is_backward ? "upsample_backward.per_element" : "upsample.per_element",
                  .kernel = "",
                  .path = kPath,
                  .declines = declines_wide_positions,
                  .run = [=](const OpCall& call,
                             const VariantRun&) { enqueue(call, bilinear, is_backward, true); }},
                 {.name = is_backward ? "upsample_backward.wide" : "upsample.wide",
                  .kernel = "",
                  .path = kPath,
                  .run = [=](const OpCall& call, const VariantRun&) {
                    enqueue(call, bilinear, is_backward, false);
                  }}};
  op.samples = [=] { return samples(bilinear, is_backward); };
  return op;
}

// The gradient of either direction is the other one.
std::vector<Tensor> backward(const OpGradient& g, const std::string& other) {
  if (!g.wants(0) || !g.dy()) return {Tensor()};
  auto attributes = g.attributes;
  const auto& shape = g.inputs[0].shape();
  attributes.set("size", Sizes{shape[2], shape[3]});
  return {apply(other, {g.dy()}, attributes)};
}

}  // namespace

OpDef upsample_op(bool bilinear) {
  auto op = make(bilinear, false);
  op.summary = bilinear ? "images of another size, interpolated between four pixels"
                        : "images of another size, of the nearest pixels";
  op.reference = [=](RefCall& call) { reference(call, bilinear); };
  op.backward = [other = op.name + "_backward"](const OpGradient& g) { return backward(g, other); };
  op.saves = SavedTensors::always(0, 0);
  op.tolerance = [=](const OpSpec&) { return bilinear ? Tolerance{1, 8} : Tolerance{0, 0}; };
  op.tolerance_reason = "three blends of values about 1; the positions are exact";
  return op;
}

OpDef upsample_backward_op(bool bilinear) {
  auto op = make(bilinear, true);
  op.summary = fmt::format("the gradient of {}", name_of_op(bilinear));
  op.reference = [=](RefCall& call) { reference_backward(call, bilinear); };
  op.backward = [other = name_of_op(bilinear)](const OpGradient& g) { return backward(g, other); };
  op.tolerance = [](const OpSpec& spec) {
    const auto& size = spec.attributes.integers("size");
    const auto ratio = [](std::int64_t o, std::int64_t i) {
      return 3.0 + 3.0 * double(o) / double(i);
    };
    return Tolerance{1, ratio(spec.shape(0)[2], size[0]) * ratio(spec.shape(0)[3], size[1])};
  };
  op.tolerance_reason = "a sum over the outputs that read a pixel, one after the other";
  return op;
}

std::vector<OpDef> ops_of_resize() {
  return {pad_op(), upsample_op(false), upsample_op(true), upsample_backward_op(false),
          upsample_backward_op(true)};
}

}  // namespace netcl
