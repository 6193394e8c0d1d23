// tril, triu and one_hot.
#include "base/check.h"
#include "base/parallel.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/index_check.h"
#include "ops/indexing/indexing.h"
#include "ops/indexing/samples.h"
#include "ops/kernels.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/indexing/patterns.cl";

// 64-bit divisions are several times slower on most devices.
bool is_wide(const Tensor& y) { return y.numel() > INT32_MAX; }
std::string index_define(const Tensor& y) { return define("INDEX", is_wide(y) ? "ulong" : "uint"); }

// ---- triangles

bool keeps(bool lower, std::int64_t row, std::int64_t column, std::int64_t diagonal) {
  return lower ? column - row <= diagonal : column - row >= diagonal;
}

std::vector<TensorSpec> infer_triangle(const OpSpec& spec) {
  if (spec.shape(0).rank() < 2)
    fail<ShapeError>("[{}] it needs matrices, at least two axes: {}", spec.op.name,
                     spec.shape(0).to_string());
  return {{spec.shape(0), spec.dtype()}};
}

void reference_triangle(RefCall& call, bool lower) {
  for_each_element(call.inputs[0].shape, [&](const Coordinates& at, std::size_t flat) {
    if (keeps(lower, at[at.size() - 2], at.back(), call.attributes.integer("diagonal")))
      call.outputs[0].values[flat] = call.inputs[0].values[flat];
  });
}

void host_triangle(const OpCall& call, bool lower) {
  const auto &x = call.inputs[0], &y = call.outputs[0];
  const auto rows = x.size(-2), columns = x.size(-1);
  const auto diagonal = call.attributes.integer("diagonal");
  visit_dtype(x.dtype(), [&]<class T>(T) {
    const auto* from = static_cast<const T*>(x.host_data());
    auto* to = static_cast<T*>(y.host_data());
    parallel_for(x.numel() / columns, 1 + 16384 / columns,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto row = begin; row < end; ++row)
                     for (std::int64_t k = 0; k < columns; ++k)
                       to[row * columns + k] =
                           keeps(lower, row % rows, k, diagonal) ? from[row * columns + k] : T{};
                 });
  });
}

void enqueue_triangle(const OpCall& call, bool lower) {
  const auto &x = call.inputs[0], &y = call.outputs[0];
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, "triangle", {static_cast<std::int64_t>(size_of(x.dtype())), is_wide(y)}),
      [&] { return define("T", opaque_type(x.dtype())) + index_define(y); });
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs()
      .tensor(x)
      .tensor(y)
      .value(static_cast<std::uint64_t>(y.numel()))
      .value(static_cast<std::uint64_t>(x.size(-2)))
      .value(static_cast<std::uint64_t>(x.size(-1)))
      .value(call.attributes.integer("diagonal"))
      .value(std::int32_t{lower})
      .enqueue(call.queue, kernel, WorkSize(rounded_up(y.numel(), local)), WorkSize(local));
}

// ---- one_hot

DType target_of(const Attributes& attributes) { return parse_dtype(attributes.text("dtype")); }

std::vector<TensorSpec> infer_one_hot(const OpSpec& spec) {
  require_index_dtype(spec, 0);
  const auto classes = spec.attributes.integer("classes");
  check<ArgumentError>(classes > 0, "[one_hot] there must be at least one class: {}", classes);
  auto sizes = spec.shape(0).sizes();
  sizes.push_back(classes);
  return {{Shape(std::move(sizes)), target_of(spec.attributes)}};
}

void reference_one_hot(RefCall& call) {
  const auto classes = static_cast<std::size_t>(call.attributes.integer("classes"));
  for (std::size_t i = 0; i < call.inputs[0].values.size(); ++i)
    call.outputs[0].values[i * classes + static_cast<std::size_t>(call.inputs[0].values[i])] = 1;
}

void host_one_hot(const OpCall& call) {
  const auto classes = call.attributes.integer("classes");
  check_indices(call.op, call.inputs[0], classes);
  const auto n = call.inputs[0].numel();
  visit_dtype(call.outputs[0].dtype(), [&]<class T>(T) {
    auto* to = static_cast<T*>(call.outputs[0].host_data());
    const auto rows = [&](const auto* indices) {
      parallel_for(n, 1 + 16384 / classes, [&](std::int64_t begin, std::int64_t end) {
        std::fill(to + begin * classes, to + end * classes, T{});
        for (auto i = begin; i < end; ++i) to[i * classes + indices[i]] = convert_element<T>(1.0f);
      });
    };
    if (call.dtype() == DType::int32)
      rows(static_cast<const std::int32_t*>(call.inputs[0].host_data()));
    else
      rows(static_cast<const std::int64_t*>(call.inputs[0].host_data()));
  });
}

void enqueue_one_hot(const OpCall& call) {
  const auto &indices = call.inputs[0], &y = call.outputs[0];
  const auto classes = call.attributes.integer("classes");
  check_indices(call.op, indices, classes);
  const auto kernel = op_kernel(call.queue,
                                KernelKey(kPath, "one_hot",
                                          {static_cast<std::int64_t>(indices.dtype()),
                                           static_cast<std::int64_t>(y.dtype()), is_wide(y)}),
                                [&] {
                                  return type_macros("IDX", indices.dtype()) +
                                         t_and_acc(y.dtype()) + define("ONE_HOT", 1) +
                                         index_define(y);
                                });
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs()
      .tensor(indices)
      .tensor(y)
      .value(static_cast<std::uint64_t>(y.numel()))
      .value(static_cast<std::uint64_t>(classes))
      .enqueue(call.queue, kernel, WorkSize(rounded_up(y.numel(), local)), WorkSize(local));
}

}  // namespace

OpDef triangle_op(bool lower) {
  OpDef op;
  op.name = lower ? "tril" : "triu";
  op.summary =
      lower ? "matrices with zeros above a diagonal" : "matrices with zeros below a diagonal";
  op.dtypes = kFloatsAndInts;
  op.infer = infer_triangle;
  op.reference = [=](RefCall& call) { reference_triangle(call, lower); };
  op.host = [=](const OpCall& call) { host_triangle(call, lower); };
  op.variants = {
      {.name = lower ? "tril.per_element" : "triu.per_element",
       .kernel = "",
       .path = kPath,
       .run = [=](const OpCall& call, const VariantRun&) { enqueue_triangle(call, lower); }}};
  op.backward = [name = op.name](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {apply(name, {g.dy()}, g.attributes)};
  };
  op.saves = SavedTensors::always(0, 0);
  op.samples = triangle_samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "nothing is computed";
  return op;
}

OpDef one_hot_op() {
  OpDef op;
  op.name = "one_hot";
  op.summary = "a row of zeros with a one at the index, per index";
  op.dtypes = {DType::int64, DType::int32};
  op.infer = infer_one_hot;
  op.reference = reference_one_hot;
  op.host = host_one_hot;
  op.variants = {{.name = "one_hot.per_element",
                  .kernel = "",
                  .path = kPath,
                  .run = [](const OpCall& call, const VariantRun&) { enqueue_one_hot(call); }}};
  op.samples = one_hot_samples;
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "zeros and ones";
  return op;
}

std::vector<OpDef> ops_of_indexing() {
  return {concat_op(),       stack_op(),        index_select_op(), gather_op(),
          embedding_op(),    index_add_op(),    scatter_add_op(),  one_hot_op(),
          triangle_op(true), triangle_op(false)};
}

}  // namespace netcl
