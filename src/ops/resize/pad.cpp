// Constant padding: the border value everywhere, then the input copied into its place. Two passes
// over the memory, but no kernel of its own for any rank and dtype.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/resize/resize.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

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
                      {{1, 2, 3, 4, 5}, {0, 1, 0, 0, 1, 0, 0, 0, 2, 0}, -3}};
  std::vector<OpSample> all;
  for (const auto& row : rows)
    all.push_back(
        {fmt::format("{}_by_{}_with_{}", row.shape.empty() ? "scalar" : join(row.shape, "x"),
                     row.padding.empty() ? "none" : join(row.padding, "_"), row.value),
         {{Shape(row.shape), Fill::distinct, -100, 100}},
         {{"padding", row.padding}, {"value", row.value}}});
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
  op.host = fill_and_copy;
  op.variants = {{.name = "pad.fill_and_copy",
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
