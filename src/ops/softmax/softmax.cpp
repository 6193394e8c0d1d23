// softmax and log_softmax along an axis, and their gradients as ops of their own.
#include "ops/softmax/softmax.h"

#include <cmath>

#include "base/check.h"
#include "base/format.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/softmax/family.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/softmax.cl";
constexpr const char* kVectorPath = "ops/softmax/softmax_rows.cl";
constexpr const char* kColumnPath = "ops/softmax/softmax_columns.cl";
constexpr std::int64_t kNearBytes = 32 << 10;  // what is kept of a strip, where its rows allow it
constexpr std::int64_t kKeptBytes = 256 << 10;
constexpr std::int64_t kWidest = 16, kNarrow = 4;  // vectors of a strip

using Kind = SoftmaxKind;

bool is_backward(Kind kind) { return kind >= Kind::softmax_backward; }

RowPlan plan_of(const OpCall& call) {
  return plan_rows(call.inputs[0].shape(), call.attributes.integer("axis"));
}

std::vector<TensorSpec> infer(const OpSpec& spec) {
  check_floating(spec);
  const auto axis = spec.attributes.integer("axis");
  const auto rank = spec.shape(0).rank();
  check<ShapeError>(axis >= 0 && axis < rank, "[{}] axis {} is out of range for rank {}",
                    spec.op.name, axis, rank);
  if (spec.inputs.size() > 1) check_same(spec, 0, 1);
  return {{spec.shape(0), spec.dtype()}};
}

// The definitions, word for word.
void reference(Kind kind, RefCall& call) {
  const auto plan = plan_rows(call.inputs[0].shape, call.attributes.integer("axis"));
  const auto& x = call.inputs[0].values;
  auto& y = call.outputs[0].values;
  for (std::int64_t row = 0; row < plan.rows(); ++row) {
    const auto at = [&](std::int64_t i) {
      return static_cast<std::size_t>((row / plan.inner * plan.n + i) * plan.inner +
                                      row % plan.inner);
    };
    double top = -INFINITY, sum = 0, dot = 0, total = 0;
    for (std::int64_t i = 0; i < plan.n; ++i) top = std::fmax(top, x[at(i)]);
    for (std::int64_t i = 0; i < plan.n; ++i) {
      sum += std::exp(x[at(i)] - top);
      if (!is_backward(kind)) continue;
      dot += x[at(i)] * call.inputs[1].values[at(i)];
      total += call.inputs[1].values[at(i)];
    }
    for (std::int64_t i = 0; i < plan.n; ++i) {
      const double v = x[at(i)], dy = is_backward(kind) ? call.inputs[1].values[at(i)] : 0;
      y[at(i)] = kind == Kind::softmax            ? std::exp(v - top) / sum
                 : kind == Kind::log_softmax      ? v - top - std::log(sum)
                 : kind == Kind::softmax_backward ? v * (dy - dot)
                                                  : dy - std::exp(v) * total;
    }
  }
}

void run_rows(const char* kernel_name, const OpCall& call, const RowPlan& plan, Team team) {
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  args.tensor(call.outputs[0]).value(plan.outer).value(plan.n);
  if (in_vectors(call.queue, plan, team))
    return enqueue_blocks(call.queue, vector_kernel(call, kVectorPath, kernel_name),
                          std::move(args), plan);
  args.value(plan.inner);
  const auto kernel = team_kernel(call.queue, kPath, kernel_name, call.dtype(), team);
  enqueue_teams(call.queue, kernel, args, team, plan.rows());
}

// Rows that lie next to each other as lanes of vectors; false where they do not fit.
bool run_columns(const char* kernel_name, const OpCall& call, const RowPlan& plan) {
  const auto& profile = device_profile(call.queue);
  const auto vec = row_lanes(call.dtype(), profile);
  if (2 * plan.inner <= vec) return false;
  const auto bytes = static_cast<std::int64_t>(call.inputs.size()) * plan.n * vec *
                     static_cast<std::int64_t>(size_of(compute_dtype(call.dtype())));
  const auto room =
      std::min<std::int64_t>(static_cast<std::int64_t>(profile.local_mem_size) / 2, kKeptBytes);
  if (bytes > room) return false;
  // A few neighbours at least, for they share the way to memory, and more if the first cache holds
  // them.
  const auto most = std::clamp<std::int64_t>(
      std::max(kNearBytes / bytes, std::min(kNarrow, room / bytes)), 1, kWidest);
  const auto whole = std::max<std::int64_t>(plan.inner / vec, 1);
  const auto strips = static_cast<std::int64_t>(ceil_div(whole, most));
  const auto width =
      static_cast<std::int64_t>(ceil_div(whole, strips)) + (plan.inner > whole * vec ? 1 : 0);
  OpArgs args;
  for (const auto& input : call.inputs) args.tensor(input);
  args.tensor(call.outputs[0]).value(plan.outer).value(plan.n).value(plan.inner).value(strips);
  args.value(static_cast<std::int32_t>(width * vec));
  args.value(KernelArg::local(static_cast<std::size_t>(bytes * width)));
  const auto kernel = vector_kernel(call, kColumnPath, kernel_name, 0, define("MOST", kWidest + 1));
  enqueue_blocks(call.queue, kernel, std::move(args),
                 {plan.outer * strips, plan.n * width * vec, 1});
  return true;
}

void run(const char* kernel_name, const OpCall& call, Team team) {
  const auto plan = plan_of(call);
  if (team == Team::item && plan.inner > 1 && plan.n > 0 && device_profile(call.queue).is_cpu) {
    if (run_columns(kernel_name, call, plan)) return;
    // Too few neighbours, or too many elements: one behind the other.
    const auto rows = [&](const Tensor& t) {
      return t.reshape({plan.outer, plan.n, plan.inner}).permute({0, 2, 1});
    };
    OpCall joined{call.op, call.queue, {}, call.attributes, {}};
    for (const auto& input : call.inputs) joined.inputs.push_back(rows(input).contiguous());
    joined.outputs.push_back(Tensor::empty(call.queue, Shape{plan.rows(), plan.n}, call.dtype()));
    run_rows(kernel_name, joined, {plan.rows(), plan.n, 1}, team);
    rows(call.outputs[0]).copy_from(joined.outputs[0].reshape({plan.outer, plan.inner, plan.n}));
    return;
  }
  run_rows(kernel_name, call, plan, team);
}

// ---- samples

OpSample sample_of(Kind kind, const Shape& shape, std::int64_t axis) {
  OpSample sample{fmt::format("{}_axis{}", join(shape.sizes(), "x"), axis), {}, {{"axis", axis}}};
  SampleInput x{shape, Fill::uniform, -6, 6}, dy{shape};
  if (kind == Kind::softmax_backward) x.low = 0, x.high = 0.1;
  if (kind == Kind::log_softmax_backward) x.low = -6, x.high = 0;
  sample.inputs = is_backward(kind) ? std::vector<SampleInput>{x, dy} : std::vector<SampleInput>{x};
  return sample;
}

std::vector<OpSample> samples(Kind kind) {
  std::vector<OpSample> all;
  const auto add = [&](const Shape& shape, std::int64_t axis) {
    all.push_back(sample_of(kind, shape, axis));
  };
  for (const std::int64_t n : {1, 2, 7, 15, 16, 17, 63, 65, 257}) add({3, n}, 1);
  add({5, 3}, 0), add({2, 7, 5}, 1), add({2, 7, 5}, 0), add({2, 7, 5}, 2), add({9}, 0);
  add({1031}, 0), add({0, 4}, 1), add({3, 0}, 1), add({2, 3, 4, 5}, 1);
  for (const std::int64_t n : {3, 31, 33, 64, 127, 129, 255, 256, 4099}) add({2, n}, 1);
  add({3, 21, 37}, 1), add({2, 5, 300}, 1), add({31, 130}, 0), add({70, 2, 12}, 1);
  // The reference adds in one order: in double its sums of many are no better than others.
  add({5000, 9}, 0), all.back().dtypes = {DType::float32, DType::float16};
  add({33, 17}, 0), add({70, 10}, 1), add({1, 1, 1}, 1), add({2, 1, 3, 1, 5}, 2);
  if (is_backward(kind)) return all;
  const double inf = INFINITY, nan = NAN;
  SampleInput rows{{8, 3}, Fill::values};
  rows.values = {nan, 1,   2,    inf, 1,    2, -inf, 1,   2,   -inf, -inf, -inf,
                 inf, inf, -inf, 1e4, -1e4, 0, 800,  801, 802, -800, -801, -802};
  all.push_back({"special_rows", {rows}, {{"axis", std::int64_t{1}}}, false});
  SampleInput columns{{3, 40}, Fill::values};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 40; ++j) columns.values.push_back(rows.values[j % 8 * 3 + i]);
  all.push_back({"special_columns", {columns}, {{"axis", std::int64_t{0}}}, false});
  return all;
}

// In ops, for gradients of gradients.
Tensor composed_gradient(bool log, const Tensor& y, const Tensor& dy, std::int64_t axis) {
  return log ? dy - ops::exp(y) * ops::sum(dy, {axis}, true)
             : y * (dy - ops::sum(y * dy, {axis}, true));
}

std::vector<Tensor> gradient_of(const char* backward, const OpGradient& gradient) {
  if (!gradient.wants(0) || !gradient.dy()) return {Tensor()};
  if (gradient.differentiable)
    return {composed_gradient(std::string_view(backward) == "log_softmax_backward",
                              gradient.outputs[0], gradient.dy(),
                              gradient.attributes.integer("axis"))};
  return {apply(backward, {gradient.outputs[0], gradient.dy()}, gradient.attributes)};
}

OpDef make(Kind kind, const char* name, const char* summary, const char* item, const char* group) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.dtypes = kFloats;
  op.infer = infer;
  op.reference = [kind](RefCall& call) { reference(kind, call); };
  op.host = [kind](const OpCall& call) { host_softmax(kind, plan_of(call), call); };
  set_row_variants(op, item, group, kPath, plan_of,
                   [name](const OpCall& call, Team team) { run(name, call, team); });
  op.samples = [kind] { return samples(kind); };
  op.tolerance = [kind](const OpSpec& spec) {
    const auto n = static_cast<double>(plan_rows(spec.shape(0), spec.attributes.integer("axis")).n);
    return is_backward(kind) ? Tolerance{8, n / 8 + 4} : Tolerance{12, 4};
  };
  op.tolerance_reason = "two exponentials of 3 ulps each, whose argument was rounded, and a sum";
  return op;
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  auto softmax = make(Kind::softmax, "softmax", "exp(x) / sum(exp(x)) along an axis",
                      "softmax.item", "softmax.group");
  softmax.backward = [](const OpGradient& g) { return gradient_of("softmax_backward", g); };
  auto log_softmax = make(Kind::log_softmax, "log_softmax", "log(softmax(x)), without underflow",
                          "log_softmax.item", "log_softmax.group");
  softmax.saves = log_softmax.saves = SavedTensors::always(0, 1);
  log_softmax.backward = [](const OpGradient& g) { return gradient_of("log_softmax_backward", g); };
  return {
      softmax, log_softmax,
      make(Kind::softmax_backward, "softmax_backward", "y (dy - sum(y dy)) along an axis",
           "softmax_backward.item", "softmax_backward.group"),
      make(Kind::log_softmax_backward, "log_softmax_backward", "dy - exp(y) sum(dy) along an axis",
           "log_softmax_backward.item", "log_softmax_backward.group")};
}

}  // namespace netcl
