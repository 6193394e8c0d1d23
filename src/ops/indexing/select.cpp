// index_select, embedding and gather: elements picked by indices.
#include "base/check.h"
#include "base/parallel.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/index_check.h"
#include "ops/indexing/indexing.h"
#include "ops/indexing/samples.h"
#include "ops/kernels.h"
#include "ops/memory_hints.h"
#include "ops/vector_lanes.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/indexing/select.cl";
constexpr const char* kRowsPath = "ops/indexing/select_rows.cl";  // on CPUs

// x seen as (outer, size, inner), y as (outer, count, inner).
struct Pick {
  AxisView x;
  std::int64_t count;
  bool per_element;
};

void enqueue(const OpCall& call, const Tensor& x, const Tensor& indices, const Pick& pick) {
  const auto& y = call.outputs[0];
  const bool wide = y.numel() > INT32_MAX;
  const auto kernel = op_kernel(
      call.queue,
      KernelKey(kPath, "index_rows",
                {static_cast<std::int64_t>(size_of(x.dtype())),
                 static_cast<std::int64_t>(indices.dtype()), pick.per_element, wide}),
      [&] {
        return define("T", opaque_type(x.dtype())) + type_macros("IDX", indices.dtype()) +
               define("PER_ELEMENT", pick.per_element) + define("INDEX", wide ? "ulong" : "uint");
      });
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, 64));
  OpArgs()
      .tensor(x)
      .tensor(indices)
      .tensor(y)
      .value(static_cast<std::uint64_t>(y.numel()))
      .value(pick.x.size)
      .value(static_cast<std::uint64_t>(pick.count))
      .value(static_cast<std::uint64_t>(pick.x.inner))
      .enqueue(call.queue, kernel, WorkSize(rounded_up(y.numel(), local)), WorkSize(local));
}

// Elements of a work-item on a CPU: a start costs less than the least, and the most leaves enough
// of them for all cores to end together.
constexpr std::int64_t kLeastPart = 4096, kMostPart = 32768, kPartsPerUnit = 8;
constexpr std::int64_t kLeastRun = 16;  // bytes; shorter rows are copied element by element

void enqueue_rows(const OpCall& call, const Tensor& x, const Tensor& indices, const Pick& pick) {
  const auto& y = call.outputs[0];
  const auto& profile = device_profile(call.queue);
  const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
  const auto inner = pick.x.inner;
  const bool runs = !pick.per_element && inner * size >= kLeastRun;
  const bool streams = runs && outgrow_caches(2 * y.nbytes(), profile);
  const auto longest = vector_lanes(profile, 64, DType::uint8);
  const auto kernel =
      op_kernel(call.queue,
                KernelKey(kRowsPath, "index_rows",
                          {size, static_cast<std::int64_t>(indices.dtype()), pick.per_element, runs,
                           streams, longest}),
                [&] {
                  return define("T", opaque_type(x.dtype())) + type_macros("IDX", indices.dtype()) +
                         define("PER_ELEMENT", pick.per_element) + define("RUNS", runs) +
                         define("LONGEST", longest) + define("STREAMS", streams);
                });
  const auto rows = pick.x.outer * pick.count;
  const auto units = std::max<std::int64_t>(profile.compute_units, 1);
  const auto part = std::clamp(rows * inner / (kPartsPerUnit * units), kLeastPart, kMostPart);
  const auto piece = runs ? std::min(inner, kMostPart) : inner;
  const auto pieces = static_cast<std::int64_t>(ceil_div(inner, piece));
  const auto rows_per_item = std::clamp<std::int64_t>(part / piece, 1, rows);
  const auto items = static_cast<std::int64_t>(ceil_div(rows, rows_per_item)) * pieces;
  const auto bad = Tensor::empty(call.queue, Shape{items}, DType::int32);
  OpArgs()
      .tensor(x)
      .tensor(indices)
      .tensor(y)
      .tensor(bad)
      .value(rows)
      .value(rows_per_item)
      .value(pieces)
      .value(piece)
      .value(pick.x.size)
      .value(pick.count)
      .value(inner)
      .enqueue(call.queue, kernel, WorkSize(static_cast<std::size_t>(items)), WorkSize(1));
  judge_indices(call.op, indices, pick.x.size, bad);
}

template <class T, class I>
void pick_rows(const T* x, const I* indices, T* y, const Pick& pick) {
  const auto inner = pick.x.inner;
  parallel_for(pick.x.outer * pick.count, 1 + 16384 / inner,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto row = begin; row < end; ++row) {
                   const auto* from = x + row / pick.count * pick.x.size * inner;
                   auto* to = y + row * inner;
                   if (!pick.per_element)
                     std::copy_n(from + indices[row % pick.count] * inner, inner, to);
                   else
                     for (std::int64_t i = 0; i < inner; ++i)
                       to[i] = from[indices[row * inner + i] * inner + i];
                 }
               });
}

void on_host(const OpCall& call, const Tensor& x, const Tensor& indices, const Pick& pick) {
  visit_dtype(x.dtype(), [&]<class T>(T) {
    const auto* from = static_cast<const T*>(x.host_data());
    auto* to = static_cast<T*>(call.outputs[0].host_data());
    if (indices.dtype() == DType::int32)
      pick_rows(from, static_cast<const std::int32_t*>(indices.host_data()), to, pick);
    else
      pick_rows(from, static_cast<const std::int64_t*>(indices.host_data()), to, pick);
  });
}

enum class Way { on_host, per_element, rows };

void run(const OpCall& call, const Tensor& x, const Tensor& indices, const Pick& pick, Way way) {
  // Those of the rows are checked while they are used; but of nothing, nothing can be read.
  if (way != Way::rows || pick.x.size == 0) check_indices(call.op, indices, pick.x.size);
  switch (way) {
    case Way::on_host:
      return on_host(call, x, indices, pick);
    case Way::per_element:
      return enqueue(call, x, indices, pick);
    case Way::rows:
      return enqueue_rows(call, x, indices, pick);
  }
}

// ---- index_select

void run_select(const OpCall& call, Way way) {
  const auto axis =
      normalize_axis(call.attributes.integer("axis"), call.inputs[0].ndim(), "index_select");
  run(call, call.inputs[0], call.inputs[1],
      {AxisView(call.inputs[0].shape(), axis), call.inputs[1].numel(), false}, way);
}

std::vector<TensorSpec> infer_select(const OpSpec& spec) {
  require_index_dtype(spec, 1);
  const auto axis = axis_of(spec);
  if (spec.shape(1).rank() != 1)
    fail<ShapeError>("[index_select] the indices must be one-dimensional: {}",
                     spec.shape(1).to_string());
  auto sizes = spec.shape(0).sizes();
  sizes[static_cast<std::size_t>(axis)] = spec.shape(1)[0];
  return {{Shape(std::move(sizes)), spec.dtype()}};
}

void reference_select(RefCall& call) {
  const auto &x = call.inputs[0], &indices = call.inputs[1];
  auto& y = call.outputs[0];
  const auto axis = static_cast<std::size_t>(
      normalize_axis(call.attributes.integer("axis"), x.shape.rank(), "index_select"));
  for_each_element(y.shape, [&](Coordinates at, std::size_t flat) {
    at[axis] = static_cast<std::int64_t>(indices.values[static_cast<std::size_t>(at[axis])]);
    y.values[flat] = x.values[flat_position(x.shape, at)];
  });
}

std::vector<Tensor> backward_select(const OpGradient& g) {
  if (!g.wants(0) || !g.dy()) return {Tensor(), Tensor()};
  const auto zeros = Tensor::from_shape(g.dy().queue(), g.inputs[0].shape(), g.dy().dtype());
  return {apply("index_add", {zeros, g.inputs[1], g.dy()}, g.attributes), Tensor()};
}

// ---- embedding

std::vector<TensorSpec> infer_embedding(const OpSpec& spec) {
  require_index_dtype(spec, 0);
  if (spec.shape(1).rank() != 2)
    fail<ShapeError>("[embedding] the table must be (rows, width): {}", spec.shape(1).to_string());
  auto sizes = spec.shape(0).sizes();
  sizes.push_back(spec.shape(1)[1]);
  return {{Shape(std::move(sizes)), spec.dtype(1)}};
}

void reference_embedding(RefCall& call) {
  const auto &indices = call.inputs[0], &table = call.inputs[1];
  const auto width = static_cast<std::size_t>(table.shape[1]);
  for (std::size_t i = 0; i < indices.values.size(); ++i)
    for (std::size_t k = 0; k < width; ++k)
      call.outputs[0].values[i * width + k] =
          table.values[static_cast<std::size_t>(indices.values[i]) * width + k];
}

void run_embedding(const OpCall& call, Way way) {
  run(call, call.inputs[1], call.inputs[0],
      {AxisView(call.inputs[1].shape(), 0), call.inputs[0].numel(), false}, way);
}

std::vector<Tensor> backward_embedding(const OpGradient& g) {
  if (!g.wants(1) || !g.dy()) return {Tensor(), Tensor()};
  const auto &indices = g.inputs[0], &table = g.inputs[1];
  const auto zeros = Tensor::from_shape(g.dy().queue(), table.shape(), g.dy().dtype());
  const std::vector<std::int64_t> flat = {indices.numel()};
  const std::vector<std::int64_t> rows = {indices.numel(), table.shape()[1]};
  return {Tensor(), apply("index_add",
                          {zeros, apply("reshape", {indices}, {{"sizes", flat}}),
                           apply("reshape", {g.dy()}, {{"sizes", rows}})},
                          {{"axis", std::int64_t{0}}})};
}

// ---- gather

void check_fits(const OpSpec& spec, std::int64_t axis) {
  const auto &x = spec.shape(0), &indices = spec.shape(1);
  bool fits = indices.rank() == x.rank();
  for (std::int64_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits)
    fail<ShapeError>(
        "[{}] the indices must have the rank of x and be no larger on the axes other "
        "than {}: {} for {}",
        spec.op.name, axis, indices.to_string(), x.to_string());
}

std::vector<TensorSpec> infer_gather(const OpSpec& spec) {
  require_index_dtype(spec, 1);
  check_fits(spec, axis_of(spec));
  return {{spec.shape(1), spec.dtype()}};
}

void reference_gather(RefCall& call) {
  const auto &x = call.inputs[0], &indices = call.inputs[1];
  const auto axis = static_cast<std::size_t>(
      normalize_axis(call.attributes.integer("axis"), x.shape.rank(), "gather"));
  for_each_element(indices.shape, [&](Coordinates at, std::size_t flat) {
    at[axis] = static_cast<std::int64_t>(indices.values[flat]);
    call.outputs[0].values[flat] = x.values[flat_position(x.shape, at)];
  });
}

void run_gather(const OpCall& call, Way way) {
  const auto& indices = call.inputs[1];
  auto x = call.inputs[0];
  const auto axis = normalize_axis(call.attributes.integer("axis"), x.ndim(), "gather");
  // Smaller indices see the first part of x only; rare enough for a copy of that part.
  for (std::int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) x = x.narrow(i, 0, indices.shape()[i]);
  run(call, x.contiguous(), indices,
      {AxisView(x.shape(), axis), AxisView(indices.shape(), axis).size, true}, way);
}

std::vector<Tensor> backward_gather(const OpGradient& g) {
  if (!g.wants(0) || !g.dy()) return {Tensor(), Tensor()};
  const auto zeros = Tensor::from_shape(g.dy().queue(), g.inputs[0].shape(), g.dy().dtype());
  return {apply("scatter_add", {zeros, g.inputs[1], g.dy()}, g.attributes), Tensor()};
}

OpDef make(const char* name, const char* rows, const char* per_element,
           void (*run_op)(const OpCall&, Way)) {
  const auto by = [run_op](Way way) {
    return [=](const OpCall& call, const VariantRun&) { run_op(call, way); };
  };
  OpDef op;
  op.name = name;
  op.dtypes = kFloatsAndInts;
  op.host = [run_op](const OpCall& call) { run_op(call, Way::on_host); };
  op.variants = {
      {.name = rows,
       .kernel = "",
       .path = kRowsPath,
       .declines = [](const OpCall&, const ExtendedDeviceProfile& profile) -> std::string {
         return profile.is_cpu ? "" : "work-items that own many rows are for CPUs";
       },
       .run = by(Way::rows)},
      {.name = per_element, .kernel = "", .path = kPath, .run = by(Way::per_element)}};
  op.tolerance = [](const OpSpec&) { return Tolerance{0, 0}; };
  op.tolerance_reason = "nothing is computed";
  return op;
}

}  // namespace

OpDef index_select_op() {
  auto op = make("index_select", "index_select.rows", "index_select.per_element", run_select);
  op.summary = "parts of one axis, picked by indices";
  op.infer = infer_select;
  op.reference = reference_select;
  op.backward = backward_select;
  op.saves = SavedTensors::always(2, 0);
  op.samples = index_select_samples;
  return op;
}

OpDef embedding_op() {
  auto op = make("embedding", "embedding.rows", "embedding.per_element", run_embedding);
  op.summary = "rows of a table, picked by indices";
  op.infer = infer_embedding;
  op.reference = reference_embedding;
  op.backward = backward_embedding;
  op.saves = SavedTensors::always(1, 0);
  op.samples = embedding_samples;
  return op;
}

OpDef gather_op() {
  auto op = make("gather", "gather.rows", "gather.per_element", run_gather);
  op.summary = "elements picked along one axis, an index for each";
  op.infer = infer_gather;
  op.reference = reference_gather;
  op.backward = backward_gather;
  op.saves = SavedTensors::always(2, 0);
  op.samples = gather_samples;
  return op;
}

}  // namespace netcl
