// index_add and scatter_add: x with values added at the places that indices name.
#include "base/check.h"
#include "base/parallel.h"
#include "ops/coordinates.h"
#include "ops/dispatch.h"
#include "ops/index_check.h"
#include "ops/indexing/indexing.h"
#include "ops/indexing/samples.h"
#include "ops/kernels.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/indexing/add.cl";

// y seen as (outer, size, inner), the source as (outer, count, inner).
struct Add {
  AxisView y;
  std::int64_t count;
  bool per_element;
};

// A few cache lines of neighbours per work-item on a CPU, where work-items run one after the other;
// on other devices neighbours are other work-items.
std::int64_t columns_of(const Queue& queue) { return device_profile(queue).is_cpu ? 64 : 1; }

// Every part reads all indices again, so no more of them than the device can use.
std::int64_t parts_of(const Queue& queue, std::int64_t blocks, std::int64_t size) {
  const std::int64_t wanted = device_profile(queue).is_cpu ? 16 : 16384;
  return std::clamp<std::int64_t>(wanted / blocks, 1, std::min<std::int64_t>(size, 64));
}

void enqueue(const Tensor& y, const Tensor& indices, const Tensor& source, const Add& add) {
  const auto& queue = y.queue();
  const auto columns = columns_of(queue);
  const auto kernel =
      op_kernel(queue,
                KernelKey(kPath, "add_rows",
                          {static_cast<std::int64_t>(y.dtype()),
                           static_cast<std::int64_t>(indices.dtype()), add.per_element, columns}),
                [&] {
                  return t_and_acc(y.dtype()) + type_macros("IDX", indices.dtype()) +
                         define("PER_ELEMENT", add.per_element) + define("COLUMNS", columns);
                });
  const auto blocks = add.y.outer * static_cast<std::int64_t>(ceil_div(add.y.inner, columns));
  const auto parts = parts_of(queue, blocks, add.y.size);
  const auto local = static_cast<std::int64_t>(clamped_local(kernel, columns > 1 ? 1 : 64));
  OpArgs()
      .tensor(source)
      .tensor(indices)
      .tensor(y)
      .value(static_cast<std::uint64_t>(blocks))
      .value(parts)
      .value(add.y.size)
      .value(add.count)
      .value(add.y.inner)
      .enqueue(queue, kernel, WorkSize(rounded_up(blocks * parts, local)), WorkSize(local));
}

// Columns begin ... end of one outer index: rows of the source one after the other.
template <class T, class I>
void add_columns(T* y, const I* indices, const T* source, const Add& add, std::int64_t begin,
                 std::int64_t end) {
  const auto inner = add.y.inner, o = begin / inner, i = begin % inner, n = end - begin;
  T* to = y + o * add.y.size * inner + i;
  for (std::int64_t j = 0; j < add.count; ++j) {
    const auto at = (o * add.count + j) * inner + i;
    if (add.per_element) {
      for (std::int64_t k = 0; k < n; ++k) to[indices[at + k] * inner + k] += source[at + k];
    } else {
      T* row = to + indices[j] * inner;
      for (std::int64_t k = 0; k < n; ++k) row[k] += source[at + k];
    }
  }
}

template <class T, class I>
void add_rows(T* y, const I* indices, const T* source, const Add& add) {
  const auto inner = add.y.inner;
  parallel_for(add.y.outer * inner, 1 + 16384 / std::max<std::int64_t>(add.count, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 while (begin < end) {
                   const auto stop = std::min(end, (begin / inner + 1) * inner);
                   add_columns(y, indices, source, add, begin, stop);
                   begin = stop;
                 }
               });
}

void on_host(const Tensor& y, const Tensor& indices, const Tensor& source, const Add& add) {
  const auto typed = [&]<class T>(T) {
    auto* to = static_cast<T*>(y.host_data());
    const auto* from = static_cast<const T*>(source.host_data());
    if (indices.dtype() == DType::int32)
      add_rows(to, static_cast<const std::int32_t*>(indices.host_data()), from, add);
    else
      add_rows(to, static_cast<const std::int64_t*>(indices.host_data()), from, add);
  };
  switch (y.dtype()) {
    case DType::float64:
      return typed(double{});
    case DType::int32:
      return typed(std::int32_t{});
    case DType::int64:
      return typed(std::int64_t{});
    default:
      return typed(float{});
  }
}

void run(const OpCall& call, bool per_element) {
  const auto &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2];
  const auto axis = normalize_axis(call.attributes.integer("axis"), x.ndim(), call.op.name.c_str());
  check_indices(call.op, indices, x.shape()[axis]);
  call.outputs[0].copy_from(x);
  if (source.numel() == 0) return;
  auto part = call.outputs[0];
  for (std::int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) part = part.narrow(i, 0, source.shape()[i]);
  // float16 is summed in float; and a part of the result is computed on a copy.
  const auto sum_dtype = compute_dtype(x.dtype());
  const bool direct = sum_dtype == x.dtype() && part.is_contiguous();
  const auto y = direct ? part : Tensor::empty(call.queue, part.shape(), sum_dtype);
  if (!direct) y.copy_from(part);
  const Add add{AxisView(y.shape(), axis), source.shape()[axis], per_element};
  const auto values = source.astype(sum_dtype);
  call.queue.is_cpu() ? on_host(y, indices, values, add) : enqueue(y, indices, values, add);
  if (!direct) part.copy_from(y);
}

void check_dtypes(const OpSpec& spec) {
  require_index_dtype(spec, 1);
  check<DtypeError>(spec.dtype(2) == spec.dtype(0),
                    "[{}] the source must have the dtype of x, {}: {}", spec.op.name,
                    name_of(spec.dtype(0)), name_of(spec.dtype(2)));
  const auto dtype = spec.dtype(0);
  check<DtypeError>(dtype == DType::int32 || dtype == DType::int64 ||
                        (is_floating(dtype) && dtype != DType::bfloat16),
                    "[{}] the dtype must be float16, float32, float64, int32 or int64: {}",
                    spec.op.name, name_of(dtype));
}

std::vector<TensorSpec> infer_index_add(const OpSpec& spec) {
  check_dtypes(spec);
  const auto axis = axis_of(spec);
  auto expected = spec.shape(0).sizes();
  if (spec.shape(1).rank() != 1)
    fail<ShapeError>("[index_add] the indices must be one-dimensional: {}",
                     spec.shape(1).to_string());
  expected[static_cast<std::size_t>(axis)] = spec.shape(1)[0];
  if (!(spec.shape(2) == Shape(expected)))
    fail<ShapeError>("[index_add] the source must have the shape {}: {}",
                     Shape(expected).to_string(), spec.shape(2).to_string());
  return {{spec.shape(0), spec.dtype()}};
}

std::vector<TensorSpec> infer_scatter_add(const OpSpec& spec) {
  check_dtypes(spec);
  const auto axis = axis_of(spec);
  const auto &x = spec.shape(0), &indices = spec.shape(1);
  bool fits = indices.rank() == x.rank();
  for (std::int64_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits)
    fail<ShapeError>(
        "[scatter_add] the indices must have the rank of x and be no larger on the axes other "
        "than {}: {} for {}",
        axis, indices.to_string(), x.to_string());
  if (!(spec.shape(2) == indices))
    fail<ShapeError>("[scatter_add] the source must have the shape of the indices, {}: {}",
                     indices.to_string(), spec.shape(2).to_string());
  return {{x, spec.dtype()}};
}

void reference(RefCall& call, bool per_element) {
  const auto &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2];
  auto& y = call.outputs[0];
  y.values = x.values;
  const auto axis = static_cast<std::size_t>(
      normalize_axis(call.attributes.integer("axis"), x.shape.rank(), "index_add"));
  for_each_element(source.shape, [&](Coordinates at, std::size_t flat) {
    const auto which = per_element ? flat : static_cast<std::size_t>(at[axis]);
    at[axis] = static_cast<std::int64_t>(indices.values[which]);
    y.values[flat_position(x.shape, at)] += source.values[flat];
  });
}

std::vector<Tensor> backward(const OpGradient& g, const char* reads) {
  std::vector<Tensor> result(3);
  if (!g.dy()) return result;
  if (g.wants(0)) result[0] = g.dy();
  if (g.wants(2)) result[2] = apply(reads, {g.dy(), g.inputs[1]}, g.attributes);
  return result;
}

OpDef make(bool per_element) {
  OpDef op;
  op.name = per_element ? "scatter_add" : "index_add";
  op.summary = per_element ? "x with values added at the places that gather would read"
                           : "x with parts of one axis added at the places that indices name";
  op.dtypes = kFloatsAndInts;
  op.infer = per_element ? infer_scatter_add : infer_index_add;
  op.reference = [=](RefCall& call) { reference(call, per_element); };
  op.host = [=](const OpCall& call) { run(call, per_element); };
  op.variants = {{.name = per_element ? "scatter_add.per_column" : "index_add.per_column",
                  .kernel = "",
                  .path = kPath,
                  .run = [=](const OpCall& call, const VariantRun&) { run(call, per_element); }}};
  op.backward = [reads = per_element ? "gather" : "index_select"](const OpGradient& g) {
    return backward(g, reads);
  };
  op.saves = SavedTensors::always(2, 0);
  op.samples = per_element ? scatter_add_samples : index_add_samples;
  op.tolerance = [](const OpSpec& spec) {
    // All of an axis may go to one place.
    return Tolerance{1, 2.0 + static_cast<double>(spec.shape(1).numel())};
  };
  op.tolerance_reason = "a sum of as many values as there may be equal indices, in order";
  return op;
}

}  // namespace

OpDef index_add_op() { return make(false); }
OpDef scatter_add_op() { return make(true); }

}  // namespace netcl
