// The OpDefs of the reductions.
#include "ops/reduction/reduction.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ops/kernels.h"

namespace netcl {

const std::vector<ReductionInfo>& reduction_infos() {
  using K = ReductionKind;
  static const auto* const infos = new std::vector<ReductionInfo>{
      {K::sum, "sum", "the sum over axes", "KIND_SUM", true},
      {K::mean, "mean", "the mean over axes", "KIND_MEAN", false},
      {K::prod, "prod", "the product over axes", "KIND_PROD", true},
      {K::max, "max", "the largest over axes; NaN stays NaN", "KIND_MAX", true},
      {K::min, "min", "the smallest over axes; NaN stays NaN", "KIND_MIN", true},
      {K::var, "var", "the variance over axes", "KIND_VAR", false},
      {K::logsumexp, "logsumexp", "log(sum(exp(x))) over axes, without overflow", "KIND_LOGSUMEXP",
       false},
      {K::argmax, "argmax", "the place of the largest along an axis", "KIND_ARGMAX", true},
      {K::argmin, "argmin", "the place of the smallest along an axis", "KIND_ARGMIN", true},
  };
  return *infos;
}

const ReductionInfo& reduction_info(std::string_view name) {
  for (const auto& info : reduction_infos())
    if (name == info.name) return info;
  fail<ArgumentError>("[ops] there is no reduction called '{}'", name);
}

std::vector<std::int64_t> reduced_axes(const ReductionInfo& info, const Attributes& attributes,
                                       std::int64_t rank) {
  if (info.is_arg()) return {normalize_axis(attributes.integer("axis"), rank, info.name)};
  std::vector<std::int64_t> axes;
  for (const auto axis : attributes.integers("axes"))
    axes.push_back(normalize_axis(axis, rank, info.name));
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  check<ShapeError>(twice == axes.end(), "[{}] every axis may be given once: axis {} comes twice",
                    info.name, twice == axes.end() ? 0 : *twice);
  if (axes.empty())
    for (std::int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

namespace {

// Nothing where more than two groups of axes are reduced, or the last axis is not.
std::optional<ReductionRuns> plan_runs(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::array<std::int64_t, 4> sizes = {1, 1, 1, 1};
  std::size_t place = 0;  // of the sizes: kept, reduced, kept, reduced
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (std::binary_search(axes.begin(), axes.end(), axis) != (place % 2 == 1)) ++place;
    if (place >= sizes.size()) return std::nullopt;
    sizes[place] *= shape[axis];
  }
  if (place + 1 != sizes.size()) return std::nullopt;
  return ReductionRuns{sizes[0], sizes[1], sizes[2], sizes[3]};
}

}  // namespace

ReductionPlan plan_reduction(const Shape& shape, const std::vector<std::int64_t>& axes) {
  ReductionPlan plan;
  const auto is_reduced = [&](std::int64_t axis) {
    return std::binary_search(axes.begin(), axes.end(), axis);
  };
  // Axes of size 1 lie wherever it suits.
  std::int64_t first = -1, last = -1;
  for (const auto axis : axes) {
    plan.reduced *= shape[axis];
    if (shape[axis] == 1) continue;
    if (first < 0) first = axis;
    last = axis;
  }
  if (first < 0) first = last = shape.rank();
  bool adjacent = true;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (is_reduced(axis)) continue;
    if (axis > first && axis < last && shape[axis] != 1) adjacent = false;
    (axis < first ? plan.outer : plan.inner) *= shape[axis];
  }
  if (adjacent) return plan;
  plan.runs = plan_runs(shape, axes);
  plan.outer *= std::exchange(plan.inner, 1);
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    if (!is_reduced(axis)) plan.order.push_back(axis);
  plan.order.insert(plan.order.end(), axes.begin(), axes.end());
  return plan;
}

Shape reduced_shape(const Shape& shape, const std::vector<std::int64_t>& axes, bool keepdim) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), axis);
    if (!is_reduced) sizes.push_back(shape[axis]);
    if (is_reduced && keepdim) sizes.push_back(1);
  }
  return Shape(std::move(sizes));
}

DType accumulator(const ReductionInfo& info, DType dtype) {
  return info.widens() && !is_floating(dtype) ? DType::int64 : compute_dtype(dtype);
}

namespace {

std::vector<TensorSpec> infer(const ReductionInfo& info, const OpSpec& spec) {
  const auto dtype = spec.dtype();
  const bool is_int = dtype == DType::int32 || dtype == DType::int64;
  const bool is_float = is_floating(dtype) && dtype != DType::bfloat16;
  check<DtypeError>(
      is_float || (is_int && info.integers), "[{}] the dtype must be {}: {}", info.name,
      info.integers ? "float16, float32, float64, int32 or int64" : "float16, float32 or float64",
      name_of(dtype));
  const auto& shape = spec.shape(0);
  const auto axes = reduced_axes(info, spec.attributes, shape.rank());
  if (info.needs_elements())
    for (const auto axis : axes)
      if (shape[axis] == 0)
        fail<ShapeError>("[{}] a reduced axis must have elements: axis {} of {}", info.name, axis,
                         shape.to_string());
  const auto out = info.is_arg()   ? DType::int64
                   : info.widens() ? (is_int ? DType::int64 : dtype)
                                   : dtype;
  return {{reduced_shape(shape, axes, spec.attributes.flag("keepdim")), out}};
}

// How many roundings a result may have gone through; values are about 1.
Tolerance tolerance(const ReductionInfo& info, const OpSpec& spec) {
  using K = ReductionKind;
  const auto axes = reduced_axes(info, spec.attributes, spec.shape(0).rank());
  const auto n = static_cast<double>(plan_reduction(spec.shape(0), axes).reduced);
  switch (info.kind) {
    case K::sum:
      return {1, n / 2};
    case K::mean:
      return {2, 1};
    case K::prod:
      return {n + 2, 0};
    case K::var:
      return {16, 4};
    case K::logsumexp:
      return {4, 8};
    default:
      return {0, 0};
  }
}

OpDef make_reduction(const ReductionInfo& info) {
  OpDef op;
  op.name = info.name;
  op.summary = info.summary;
  op.dtypes = info.integers ? kFloatsAndInts : kFloats;
  op.infer = [&info](const OpSpec& spec) { return infer(info, spec); };
  op.reference = [&info](RefCall& call) { reference_reduction(info, call); };
  op.host = [&info](const OpCall& call) { host_reduction(info, call); };
  if (!info.is_arg())
    op.backward = [&info](const OpGradient& gradient) {
      return reduction_backward(info, gradient);
    };
  const bool linear = info.kind == ReductionKind::sum || info.kind == ReductionKind::mean;
  if (linear) op.saves = SavedTensors::always(0, 0);
  op.variants = reduction_variants(info);
  op.problem = [&info](const OpCall& call) {
    const auto& shape = call.inputs[0].shape();
    const auto plan = plan_reduction(shape, reduced_axes(info, call.attributes, shape.rank()));
    return KernelProblem{"reduction",
                         {Shape{plan.results(), plan.reduced}},
                         call.dtype(),
                         {{"kind", std::string(info.name)}}};
  };
  op.samples = [&info] { return reduction_samples(info); };
  op.tolerance = [&info](const OpSpec& spec) { return tolerance(info, spec); };
  op.tolerance_reason = "sums in blocks round each element a few times; max, min and places exact";
  return op;
}

}  // namespace

std::vector<OpDef> ops_of_reduction() {
  std::vector<OpDef> ops;
  for (const auto& info : reduction_infos()) ops.push_back(make_reduction(info));
  return ops;
}

}  // namespace netcl
