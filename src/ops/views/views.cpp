// Ops whose result is a view of their input: the tensor layer makes it, this file adds what the op
// system needs around it (shapes, references, gradients, samples).
#include "base/check.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/views/cast.h"
#include "ops/views/samples.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string text_of(const Sizes& sizes) { return fmt::format("({})", join(sizes, ", ")); }

// ---- reshape

Shape reshaped(const Shape& from, const Sizes& sizes) {
  Sizes result = sizes;
  std::int64_t known = 1, missing = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) fail<ShapeError>("[reshape] sizes must be at least -1: {}", text_of(sizes));
    if (sizes[i] >= 0) {
      known = checked_multiply(known, sizes[i], "the number of elements");
      continue;
    }
    if (missing >= 0) fail<ShapeError>("[reshape] at most one size may be -1: {}", text_of(sizes));
    missing = static_cast<std::int64_t>(i);
  }
  if (missing >= 0) {
    if (known == 0 || from.numel() % known != 0)
      fail<ShapeError>("[reshape] the -1 must have one solution: {} to {}", from.to_string(),
                       text_of(sizes));
    result[static_cast<std::size_t>(missing)] = from.numel() / known;
  } else if (known != from.numel()) {
    fail<ShapeError>("[reshape] the number of elements must stay the same: {} to {}",
                     from.to_string(), text_of(sizes));
  }
  return Shape(std::move(result));
}

OpDef reshape_op() {
  OpDef op;
  op.name = "reshape";
  op.summary = "the same elements in another shape; one size may be -1";
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    return {{reshaped(spec.shape(0), spec.attributes.integers("sizes")), spec.dtype()}};
  };
  op.reference = [](RefCall& call) { call.outputs[0].values = call.inputs[0].values; };
  op.view = [](const Tensor& x, const Attributes& attributes) {
    return x.reshape(attributes.integers("sizes"));
  };
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {apply("reshape", {g.dy()}, {{"sizes", g.inputs[0].shape().sizes()}})};
  };
  op.samples = reshape_samples;
  return op;
}

// ---- permute and transpose

// Axis i of the result is axis order[i] of the input.
Sizes permuted_axes(const Shape& shape, const Sizes& axes) {
  if (static_cast<std::int64_t>(axes.size()) != shape.rank())
    fail<ShapeError>("[permute] there must be one axis per dimension of {}: {}", shape.to_string(),
                     text_of(axes));
  Sizes order;
  std::vector<bool> used(axes.size());
  for (const auto given : axes) {
    const auto axis = normalize_axis(given, shape.rank(), "permute");
    if (used[static_cast<std::size_t>(axis)])
      fail<ShapeError>("[permute] every axis must come once: {}", text_of(axes));
    used[static_cast<std::size_t>(axis)] = true;
    order.push_back(axis);
  }
  return order;
}

Sizes swapped_axes(const Shape& shape, const Attributes& attributes) {
  const auto a = normalize_axis(attributes.integer("a"), shape.rank(), "transpose");
  const auto b = normalize_axis(attributes.integer("b"), shape.rank(), "transpose");
  Sizes order;
  for (std::int64_t i = 0; i < shape.rank(); ++i) order.push_back(i == a ? b : i == b ? a : i);
  return order;
}

std::vector<TensorSpec> infer_order(const OpSpec& spec, const Sizes& order) {
  Sizes sizes;
  for (const auto axis : order) sizes.push_back(spec.shape(0)[axis]);
  return {{Shape(std::move(sizes)), spec.dtype()}};
}

void reference_order(RefCall& call, const Sizes& order) {
  const auto& x = call.inputs[0];
  auto& y = call.outputs[0];
  Coordinates from(order.size());
  for_each_element(y.shape, [&](const Coordinates& at, std::size_t flat) {
    for (std::size_t i = 0; i < order.size(); ++i) from[static_cast<std::size_t>(order[i])] = at[i];
    y.values[flat] = x.values[flat_position(x.shape, from)];
  });
}

OpDef permute_op() {
  OpDef op;
  op.name = "permute";
  op.summary = "the axes in another order";
  op.infer = [](const OpSpec& spec) {
    return infer_order(spec, permuted_axes(spec.shape(0), spec.attributes.integers("axes")));
  };
  op.reference = [](RefCall& call) {
    reference_order(call, permuted_axes(call.inputs[0].shape, call.attributes.integers("axes")));
  };
  op.view = [](const Tensor& x, const Attributes& attributes) {
    return x.permute(attributes.integers("axes"));
  };
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    const auto order = permuted_axes(g.inputs[0].shape(), g.attributes.integers("axes"));
    Sizes inverse(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    return {apply("permute", {g.dy()}, {{"axes", inverse}})};
  };
  op.samples = permute_samples;
  return op;
}

OpDef transpose_op() {
  OpDef op;
  op.name = "transpose";
  op.summary = "two axes exchanged";
  op.infer = [](const OpSpec& spec) {
    return infer_order(spec, swapped_axes(spec.shape(0), spec.attributes));
  };
  op.reference = [](RefCall& call) {
    reference_order(call, swapped_axes(call.inputs[0].shape, call.attributes));
  };
  op.view = [](const Tensor& x, const Attributes& attributes) {
    return x.transpose(attributes.integer("a"), attributes.integer("b"));
  };
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {apply("transpose", {g.dy()}, g.attributes)};
  };
  op.samples = transpose_samples;
  return op;
}

// ---- expand

OpDef expand_op() {
  OpDef op;
  op.name = "expand";
  op.summary = "axes of size 1 repeated, new axes in front";
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    const auto& from = spec.shape(0);
    const Shape to(spec.attributes.integers("shape"));
    const auto extra = to.rank() - from.rank();
    bool fits = extra >= 0;
    for (std::int64_t i = 0; fits && i < from.rank(); ++i)
      fits = from[i] == 1 || from[i] == to[i + extra];
    if (!fits)
      fail<ShapeError>("[expand] only axes of size 1 can repeat, new ones come in front: {} to {}",
                       from.to_string(), to.to_string());
    return {{to, spec.dtype()}};
  };
  op.reference = [](RefCall& call) {
    const auto& x = call.inputs[0];
    auto& y = call.outputs[0];
    const auto extra = static_cast<std::size_t>(y.shape.rank() - x.shape.rank());
    Coordinates from(static_cast<std::size_t>(x.shape.rank()));
    for_each_element(y.shape, [&](const Coordinates& at, std::size_t flat) {
      for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = x.shape[static_cast<std::int64_t>(i)] == 1 ? 0 : at[i + extra];
      y.values[flat] = x.values[flat_position(x.shape, from)];
    });
  };
  op.view = [](const Tensor& x, const Attributes& attributes) {
    return x.expand(Shape(attributes.integers("shape")));
  };
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {reduce_to_shape(g.dy(), g.inputs[0].shape())};
  };
  op.samples = expand_samples;
  return op;
}

// ---- narrow

OpDef narrow_op() {
  OpDef op;
  op.name = "narrow";
  op.summary = "a range of one axis";
  op.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    const auto& a = spec.attributes;
    const auto axis = normalize_axis(a.integer("axis"), spec.shape(0).rank(), "narrow");
    const auto size = spec.shape(0)[axis];
    const auto start = a.integer("start"), length = a.integer("length");
    check<ShapeError>(
        start >= 0 && length >= 0 && start <= size && length <= size - start,
        "[narrow] [start, start + length) must be within [0, {}): start {}, length {}", size, start,
        length);
    auto sizes = spec.shape(0).sizes();
    sizes[static_cast<std::size_t>(axis)] = length;
    return {{Shape(std::move(sizes)), spec.dtype()}};
  };
  op.reference = [](RefCall& call) {
    const auto& x = call.inputs[0];
    auto& y = call.outputs[0];
    const auto axis = static_cast<std::size_t>(
        normalize_axis(call.attributes.integer("axis"), x.shape.rank(), "narrow"));
    for_each_element(y.shape, [&](Coordinates at, std::size_t flat) {
      at[axis] += call.attributes.integer("start");
      y.values[flat] = x.values[flat_position(x.shape, at)];
    });
  };
  op.view = [](const Tensor& x, const Attributes& a) {
    return x.narrow(a.integer("axis"), a.integer("start"), a.integer("length"));
  };
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    const auto& shape = g.inputs[0].shape();
    const auto axis = normalize_axis(g.attributes.integer("axis"), shape.rank(), "narrow");
    const auto start = g.attributes.integer("start");
    Sizes padding(static_cast<std::size_t>(2 * shape.rank()), 0);
    padding[static_cast<std::size_t>(2 * axis)] = start;
    padding[static_cast<std::size_t>(2 * axis + 1)] =
        shape[axis] - start - g.attributes.integer("length");
    return {apply("pad", {g.dy()}, {{"padding", padding}, {"value", 0.0}})};
  };
  op.samples = narrow_samples;
  return op;
}

}  // namespace

std::vector<OpDef> ops_of_views() {
  std::vector<OpDef> ops = {reshape_op(), transpose_op(), permute_op(), expand_op(), narrow_op()};
  for (auto& op : ops) {
    op.dtypes = kFloatsAndInts;
    op.dtypes.push_back(DType::boolean);
    op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
    op.tolerance_reason = "nothing is computed";
    op.saves = SavedTensors::always(0, 0);
  }
  ops.push_back(cast_op());
  return ops;
}

}  // namespace netcl
