// Running sums along an axis; their gradient is the running sum from the other end.
#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "base/format.h"
#include "ops/dispatch.h"
#include "ops/softmax/family.h"
#include "ops/softmax/host_rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/cumsum.cl";
constexpr const char* kColumnPath = "ops/softmax/cumsum_columns.cl";
constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kStrip = 512;  // neighbouring rows that a work-item of a CPU walks along

DType sum_dtype(DType dtype) { return is_floating(dtype) ? dtype : DType::int64; }

std::vector<TensorSpec> infer(const OpSpec& spec) {
  const auto dtype = spec.dtype();
  check<DtypeError>((is_floating(dtype) && dtype != DType::bfloat16) || dtype == DType::int32 ||
                        dtype == DType::int64,
                    "[cumsum] the dtype must be float16, float32, float64, int32 or int64: {}",
                    name_of(dtype));
  const auto axis = spec.attributes.integer("axis"), rank = spec.shape(0).rank();
  check<ShapeError>(axis >= 0 && axis < rank, "[cumsum] axis {} is out of range for rank {}", axis,
                    rank);
  return {{spec.shape(0), sum_dtype(dtype)}};
}

RowPlan plan_of(const OpCall& call) {
  return plan_rows(call.inputs[0].shape(), call.attributes.integer("axis"));
}

KernelPtr kernel_of(const OpCall& call, const char* path) {
  const auto dtype = call.dtype(), result = call.outputs[0].dtype();
  return op_kernel(call.queue, {path, "cumsum", {static_cast<std::int64_t>(dtype)}}, [&] {
    return type_macros("T", dtype) + type_macros("Y", result) +
           define("ACC", compute_type(result)) + define("STRIP", kStrip);
  });
}

// Rows of at least so many neighbours, on a CPU.
std::string declines_columns(const OpCall& call, const ExtendedDeviceProfile& profile) {
  if (!profile.is_cpu) return "neighbouring items of a GPU own neighbouring rows";
  return plan_of(call).inner < 8 ? "there are no 8 rows next to each other" : "";
}

void run_columns(const OpCall& call, const VariantRun&) {
  const auto plan = plan_of(call);
  if (call.outputs[0].numel() == 0) return;
  // Narrower ones where there would be too few.
  const std::int64_t wanted = 4 * device_profile(call.queue).compute_units;
  const auto most = static_cast<std::int64_t>(ceil_div(plan.inner, 64));
  const auto strips =
      std::max(static_cast<std::int64_t>(ceil_div(plan.inner, kStrip)),
               std::min(static_cast<std::int64_t>(ceil_div(wanted, plan.outer)), most));
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.outputs[0]);
  args.value(plan.outer).value(plan.n).value(plan.inner);
  args.value(static_cast<std::int32_t>(call.attributes.flag("reverse") ? 1 : 0)).value(strips);
  args.enqueue(call.queue, kernel_of(call, kColumnPath),
               static_cast<std::size_t>(plan.outer * strips), 1);
}

void run(const OpCall& call, const VariantRun&) {
  const auto plan = plan_of(call);
  const auto kernel = kernel_of(call, kPath);
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(call.outputs[0]);
  args.value(plan.outer).value(plan.n).value(plan.inner);
  args.value(static_cast<std::int32_t>(call.attributes.flag("reverse") ? 1 : 0));
  enqueue_items(call.queue, kernel, args, plan.rows());
}

template <class T, class Y>
void host_typed(const OpCall& call) {
  using V = std::conditional_t<std::is_integral_v<T>, std::uint64_t, arithmetic_t<T>>;  // wraps
  const auto plan = plan_of(call);
  const bool reverse = call.attributes.flag("reverse");
  for_rows(plan, [&](std::int64_t, std::int64_t start) {
    const T* x = input_data<T>(call, 0) + start;
    Y* y = output_data<Y>(call, 0) + start;
    V before = 0, sum = 0;
    for (std::int64_t i = 0; i < plan.n; ++i) {
      if (i % kBlock == 0) before += sum, sum = 0;
      const auto at = (reverse ? plan.n - 1 - i : i) * plan.inner;
      sum += static_cast<V>(x[at]);
      if constexpr (std::is_integral_v<T>)
        y[at] = static_cast<Y>(before + sum);
      else
        y[at] = convert_element<Y>(before + sum);
    }
  });
}

void host(const OpCall& call) {
  if (call.dtype() == DType::int32) return host_typed<std::int32_t, std::int64_t>(call);
  if (call.dtype() == DType::int64) return host_typed<std::int64_t, std::int64_t>(call);
  visit_floating(call.dtype(), [&]<class T>(T) { host_typed<T, T>(call); });
}

void reference(RefCall& call) {
  const auto plan = plan_rows(call.inputs[0].shape, call.attributes.integer("axis"));
  const bool reverse = call.attributes.flag("reverse");
  for (std::int64_t row = 0; row < plan.rows(); ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < plan.n; ++i) {
      const auto at = static_cast<std::size_t>(
          (row / plan.inner * plan.n + (reverse ? plan.n - 1 - i : i)) * plan.inner +
          row % plan.inner);
      call.outputs[0].values[at] = sum += call.inputs[0].values[at];
    }
  }
}

std::vector<OpSample> samples() {
  std::vector<OpSample> all;
  const auto add = [&](const Shape& shape, std::int64_t axis, bool reverse) {
    all.push_back(
        {fmt::format("{}_axis{}{}", join(shape.sizes(), "x"), axis, reverse ? "_rev" : ""),
         {{shape, Fill::uniform, -3, 3}},
         {{"axis", axis}, {"reverse", reverse}}});
  };
  for (const std::int64_t n : {1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 129, 257, 1031})
    add({2, n}, 1, false);
  add({2, 65}, 1, true), add({5, 7}, 0, false), add({2, 9, 5}, 1, false), add({2, 9, 5}, 1, true);
  add({0, 3}, 1, false), add({3, 0}, 1, false), add({700, 3}, 1, false), add({13}, 0, true);
  add({5, 7}, 0, true), add({17, 31}, 0, true), add({1, 1}, 1, true), add({2, 0, 3}, 1, true);
  add({64}, 0, false), add({2, 9, 5}, 0, false), add({2, 9, 5}, 2, true);
  add({2, 3, 4, 5}, 2, false), add({2, 3, 4, 5}, 3, true);
  add({2, 70, 37}, 1, false), add({2, 70, 300}, 1, true), add({129, 8}, 0, false);
  SampleInput rows{{3, 4}, Fill::values};
  rows.values = {1, NAN, 2, 3, 1, INFINITY, 2, 3, INFINITY, 1, -INFINITY, 2};
  all.push_back(
      {"special_rows", {rows}, {{"axis", std::int64_t{1}}, {"reverse", false}}, false, kFloats});
  return all;
}

}  // namespace

std::vector<OpDef> cumsum_ops() {
  OpDef op;
  op.name = "cumsum";
  op.summary = "running sums along an axis; of integers in int64";
  op.dtypes = kFloatsAndInts;
  op.infer = infer;
  op.reference = reference;
  op.host = host;
  op.variants = {{"cumsum.columns", "", kColumnPath, declines_columns, run_columns},
                 {"cumsum.rows", "", kPath, nullptr, run}};
  op.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor()};
    return {apply(
        "cumsum", {g.dy()},
        {{"axis", g.attributes.integer("axis")}, {"reverse", !g.attributes.flag("reverse")}})};
  };
  op.saves = SavedTensors::always(0, 0);
  op.samples = samples;
  op.tolerance = [](const OpSpec& spec) {
    const auto n = plan_rows(spec.shape(0), spec.attributes.integer("axis")).n;
    return Tolerance{1, static_cast<double>(n)};
  };
  op.tolerance_reason = "one rounding per element, in blocks; sums of elements below 3";
  return {op};
}

}  // namespace netcl
