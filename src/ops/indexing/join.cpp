// concat and stack: every input is copied into its part of the result, one launch each, so any
// number of inputs of any strides will do.
#include "base/check.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/indexing/indexing.h"

namespace netcl {
namespace {

using Sizes = std::vector<std::int64_t>;

void check_dtypes(const OpSpec& spec) {
  for (std::size_t i = 1; i < spec.inputs.size(); ++i)
    check<DtypeError>(spec.dtype(i) == spec.dtype(0),
                      "[{}] the tensors must have one dtype: {} and, at {}, {}", spec.op.name,
                      name_of(spec.dtype(0)), i, name_of(spec.dtype(i)));
}

// The axis in the result; that of stack is new.
std::int64_t joined_axis(const Shape& first, const Attributes& attributes, bool stacks) {
  return normalize_axis(attributes.integer("axis"), first.rank() + (stacks ? 1 : 0),
                        stacks ? "stack" : "concat");
}

std::vector<TensorSpec> infer_concat(const OpSpec& spec) {
  check_dtypes(spec);
  const auto axis = joined_axis(spec.shape(0), spec.attributes, false);
  auto sizes = spec.shape(0).sizes();
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    const auto& shape = spec.shape(i);
    bool fits = shape.rank() == spec.shape(0).rank();
    for (std::int64_t k = 0; fits && k < shape.rank(); ++k)
      fits = k == axis || shape[k] == spec.shape(0)[k];
    if (!fits)
      fail<ShapeError>("[concat] the shapes must agree on all axes but {}: {} and, at {}, {}", axis,
                       spec.shape(0).to_string(), i, shape.to_string());
    // Where another axis is 0 this one may have any size.
    auto& joined = sizes[static_cast<std::size_t>(axis)];
    check<ShapeError>(!__builtin_add_overflow(joined, shape[axis], &joined),
                      "[concat] the sizes of axis {} must add up to 63 bits at most", axis);
  }
  return {{Shape(std::move(sizes)), spec.dtype()}};
}

std::vector<TensorSpec> infer_stack(const OpSpec& spec) {
  check_dtypes(spec);
  for (std::size_t i = 1; i < spec.inputs.size(); ++i)
    if (!(spec.shape(i) == spec.shape(0)))
      fail<ShapeError>("[stack] the shapes must be equal: {} and, at {}, {}",
                       spec.shape(0).to_string(), i, spec.shape(i).to_string());
  auto sizes = spec.shape(0).sizes();
  sizes.insert(sizes.begin() + joined_axis(spec.shape(0), spec.attributes, true),
               static_cast<std::int64_t>(spec.inputs.size()));
  return {{Shape(std::move(sizes)), spec.dtype()}};
}

void reference(RefCall& call, bool stacks) {
  const auto axis = joined_axis(call.inputs[0].shape, call.attributes, stacks);
  auto& y = call.outputs[0];
  std::int64_t start = 0;
  for (const auto& input : call.inputs) {
    for_each_element(input.shape, [&](Coordinates at, std::size_t flat) {
      if (stacks)
        at.insert(at.begin() + axis, start);
      else
        at[static_cast<std::size_t>(axis)] += start;
      y.values[flat_position(y.shape, at)] = input.values[flat];
    });
    start += stacks ? 1 : input.shape[axis];
  }
}

void copy_parts(const OpCall& call, bool stacks) {
  const auto axis = joined_axis(call.inputs[0].shape(), call.attributes, stacks);
  std::int64_t start = 0;
  for (const auto& input : call.inputs) {
    const auto length = stacks ? 1 : input.shape()[axis];
    const auto part = call.outputs[0].narrow(axis, start, length);
    if (input.numel() > 0) (stacks ? part.squeeze(axis) : part).copy_from(input);
    start += length;
  }
}

std::vector<Tensor> backward(const OpGradient& g, bool stacks) {
  std::vector<Tensor> result(g.inputs.size());
  if (!g.dy()) return result;
  const auto axis = joined_axis(g.inputs[0].shape(), g.attributes, stacks);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto& shape = g.inputs[i].shape();
    const std::int64_t length = stacks ? 1 : shape[axis];
    if (g.wants(i)) {
      result[i] = apply("narrow", {g.dy()}, {{"axis", axis}, {"start", start}, {"length", length}});
      if (stacks) result[i] = apply("reshape", {result[i]}, {{"sizes", shape.sizes()}});
    }
    start += length;
  }
  return result;
}

OpSample sample(const std::vector<Sizes>& shapes, std::int64_t axis, std::string id = "") {
  OpSample one{id, {}, {{"axis", axis}}};
  for (const auto& shape : shapes) {
    if (id.empty())
      one.id += (one.id.empty() ? "" : "+") + (shape.empty() ? "scalar" : join(shape, "x"));
    one.inputs.push_back({Shape(shape), Fill::distinct, -100, 100});
  }
  one.id += fmt::format("_axis{}", axis);
  return one;
}

std::vector<OpSample> concat_samples() {
  std::vector<OpSample> all = {sample({{3}}, 0),
                               sample({{3}, {5}}, 0),
                               sample({{3}, {0}, {5}}, -1),
                               sample({{0}, {0}}, 0),
                               sample({{2, 3}, {4, 3}}, 0),
                               sample({{2, 3}, {2, 5}}, 1),
                               sample({{2, 3}, {2, 5}, {2, 1}}, -1),
                               sample({{2, 0}, {2, 5}}, 1),
                               sample({{0, 2}, {0, 3}}, 1),
                               sample({{2, 3, 5}, {2, 4, 5}}, 1),
                               sample({{2, 3, 5}, {2, 4, 5}}, -2),
                               sample({{1, 2, 3, 4}, {1, 7, 3, 4}}, 1),
                               sample({{17, 19}, {17, 13}, {17, 64}}, 1),
                               sample({{7, 1}, {7, 1}, {7, 1}, {7, 1}}, 1),
                               sample({{1}, {1}}, 0),
                               sample({{257}, {1}}, 0),
                               sample({{17}, {31}, {65}}, 0),
                               sample({{1, 5}, {1, 5}}, 0),
                               sample({{5, 16}, {1, 16}, {3, 16}}, 0),
                               sample({{0, 2}, {3, 2}, {0, 2}}, 0),
                               sample({{3, 15}, {3, 17}}, 1),
                               sample({{2, 33}, {2, 1}, {2, 63}}, 1),
                               sample({{3, 1, 2}, {3, 1, 2}}, 1),
                               sample({{3, 1, 2}, {3, 1, 5}}, 2),
                               sample({{2, 3, 5}, {1, 3, 5}}, 0),
                               sample({{2, 3, 4, 5}, {2, 3, 4, 2}}, -1),
                               sample({{2, 3, 4, 5}, {2, 3, 1, 5}}, 2),
                               sample({{2, 3, 4, 5}, {3, 3, 4, 5}}, -4),
                               sample({{2, 1, 2, 1, 2}, {2, 1, 2, 3, 2}}, 3)};
  all.push_back(sample(std::vector<Sizes>(8, Sizes{2, 3}), 0, "8_of_2x3"));
  all.push_back(sample(std::vector<Sizes>(9, Sizes{3}), 0, "9_of_3"));
  all.push_back(sample(std::vector<Sizes>(33, Sizes{1, 2}), 1, "33_of_1x2"));
  return all;
}

std::vector<OpSample> stack_samples() {
  std::vector<OpSample> all;
  for (const auto& shape : {Sizes{}, Sizes{5}, Sizes{2, 3}, Sizes{0, 3}, Sizes{2, 3, 5}, Sizes{1},
                            Sizes{33}, Sizes{1, 17}})
    for (std::int64_t axis = -1; axis <= static_cast<std::int64_t>(shape.size()); ++axis)
      all.push_back(sample({shape, shape, shape}, axis));
  all.push_back(sample({{7}}, 0));
  all.push_back(sample({{65}, {65}}, 1));
  all.push_back(sample({{2, 3, 4, 5}, {2, 3, 4, 5}}, 2));
  all.push_back(sample(std::vector<Sizes>(8, Sizes{2, 3}), 1, "8_of_2x3"));
  all.push_back(sample(std::vector<Sizes>(33, Sizes{}), 0, "33_of_scalar"));
  return all;
}

OpDef make(bool stacks) {
  OpDef op;
  op.name = stacks ? "stack" : "concat";
  op.summary = stacks ? "tensors of one shape along a new axis" : "tensors one after the other";
  op.dtypes = kFloatsAndInts;
  op.dtypes.push_back(DType::boolean);
  op.infer = stacks ? infer_stack : infer_concat;
  op.reference = [=](RefCall& call) { reference(call, stacks); };
  op.host = [=](const OpCall& call) { copy_parts(call, stacks); };
  op.variants = {{.name = stacks ? "stack.copies" : "concat.copies",
                  .kernel = "",
                  .run = [=](const OpCall& call, const VariantRun&) { copy_parts(call, stacks); }}};
  op.backward = [=](const OpGradient& g) { return backward(g, stacks); };
  op.saves = SavedTensors::always(0, 0);
  op.samples = stacks ? stack_samples : concat_samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "nothing is computed";
  op.takes_views = true;
  return op;
}

}  // namespace

OpDef concat_op() { return make(false); }
OpDef stack_op() { return make(true); }

}  // namespace netcl
