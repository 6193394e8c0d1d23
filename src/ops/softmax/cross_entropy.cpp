// Cross entropy of logits against labels or probabilities, a loss per row; what becomes of the rows
// (mean, sum) is up to the public functions.
#include <climits>
#include <cmath>

#include "base/check.h"
#include "base/format.h"
#include "cl/recording.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "ops/softmax/family.h"
#include "ops/softmax/host_rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/cross_entropy.cl";
constexpr const char* kVectorPath = "ops/softmax/cross_entropy_rows.cl";

RowPlan plan_of(const OpCall& call) { return plan_rows(call.inputs[0].shape(), 1); }

void check_logits(const OpSpec& spec) {
  check_floating(spec);
  const auto& shape = spec.shape(0);
  check<ShapeError>(shape.rank() == 2, "[{}] the logits must be (rows, classes): {}", spec.op.name,
                    shape.to_string());
  check<ShapeError>(shape[1] > 0 || shape[0] == 0, "[{}] there must be at least one class: {}",
                    spec.op.name, shape.to_string());
}

void check_labels(const OpSpec& spec) {
  const auto &x = spec.shape(0), &labels = spec.shape(1);
  check<ShapeError>(labels.rank() == 1 && labels[0] == x[0],
                    "[{}] there must be one label per row: logits {}, labels {}", spec.op.name,
                    x.to_string(), labels.to_string());
  const auto dtype = spec.dtype(1);
  check<DtypeError>(dtype == DType::int32 || dtype == DType::int64,
                    "[{}] the labels must be int32 or int64: {}", spec.op.name, name_of(dtype));
  const double smoothing = spec.attributes.number("label_smoothing");
  check<ArgumentError>(smoothing >= 0 && smoothing <= 1,
                       "[{}] label_smoothing must be between 0 and 1: {}", spec.op.name, smoothing);
}

[[noreturn]] void fail_label(const std::string& op, std::int64_t classes, std::int64_t row,
                             std::int64_t label) {
  fail<ArgumentError>("[{}] a label must be below the {} classes: row {} has {}", op, classes, row,
                      label);
}

// ---- OpenCL

// One type of labels halves the number of kernels, and converting them is next to nothing.
Tensor targets_of(const OpCall& call) {
  const auto& targets = call.inputs[1];
  return is_floating(targets.dtype()) ? targets : targets.astype(DType::int64);
}

OpArgs row_args(const OpCall& call, const RowPlan& plan, const Tensor& targets,
                const Tensor* bad = nullptr) {
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(targets);
  if (call.inputs.size() > 2) args.tensor(call.inputs[2]);
  args.tensor(call.outputs[0]);
  if (bad != nullptr) args.tensor(*bad);
  args.value(plan.outer).value(plan.n);
  if (call.attributes.has("label_smoothing"))
    args.number(call.attributes.number("label_smoothing"), call.dtype())
        .value(call.attributes.integer("ignore_index"));
  return args;
}

void enqueue_rows(const OpCall& call, const char* name, Team team, const RowPlan& plan,
                  OpArgs args) {
  if (in_vectors(call.queue, plan, team))
    return enqueue_blocks(call.queue, vector_kernel(call, kVectorPath, name), std::move(args),
                          plan);
  enqueue_teams(call.queue, team_kernel(call.queue, kPath, name, call.dtype(), team), args, team,
                plan.rows());
}

// Labels are checked on the device; reading the verdict waits for it. Losses are read soon anyway,
// and a wrong label must not pass in silence.
void run_labels(const OpCall& call, Team team) {
  const auto plan = plan_of(call);
  const auto bad = Tensor::full(call.queue, Shape{1}, INT_MAX, DType::int32);
  const auto targets = targets_of(call);
  enqueue_rows(call, "cross_entropy", team, plan, row_args(call, plan, targets, &bad));
  cl::run_check([op = call.op.name, classes = plan.n, labels = call.inputs[1], bad] {
    const auto row = static_cast<std::int64_t>(bad.item());
    if (row == INT_MAX) return;
    fail_label(op, classes, row, static_cast<std::int64_t>(labels.select(0, row).item()));
  });
}

void run_plain(const char* name, const OpCall& call, Team team) {
  const auto plan = plan_of(call);
  const auto targets = targets_of(call);
  enqueue_rows(call, name, team, plan, row_args(call, plan, targets));
}

// ---- host

std::int64_t label_at(const OpCall& call, std::int64_t row) {
  return call.inputs[1].dtype() == DType::int32 ? input_data<std::int32_t>(call, 1)[row]
                                                : input_data<std::int64_t>(call, 1)[row];
}

void check_host_labels(const OpCall& call, const RowPlan& plan, std::int64_t ignored) {
  for (std::int64_t row = 0; row < plan.outer; ++row) {
    const auto label = label_at(call, row);
    if (label != ignored && (label < 0 || label >= plan.n))
      fail_label(call.op.name, plan.n, row, label);
  }
}

void host_labels(const OpCall& call, bool backward) {
  const auto plan = plan_of(call);
  const auto ignored = call.attributes.integer("ignore_index");
  check_host_labels(call, plan, ignored);
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const V smoothing = static_cast<V>(call.attributes.number("label_smoothing"));
    const V share = smoothing / static_cast<V>(plan.n);
    for_rows(plan, [&](std::int64_t r, std::int64_t start) {
      std::vector<V> row(static_cast<std::size_t>(plan.n));
      const auto label = label_at(call, r);
      if (label != ignored) load_row(input_data<T>(call, 0) + start, 1, row);
      const RowSums<V> sums(row);
      const auto at = static_cast<std::size_t>(label);
      if (backward) {
        const V dy = static_cast<V>(input_data<T>(call, 2)[r]);
        for (std::size_t i = 0; i < row.size(); ++i)
          row[i] = label == ignored ? V(0)
                                    : dy * (std::exp(row[i] - sums.top) / sums.sum - share -
                                            (i == at ? 1 - smoothing : V(0)));
        return store_row(row, output_data<T>(call, 0) + start, 1);
      }
      V loss = 0;
      if (label != ignored) {
        V target = row[at] - sums.top;
        if (smoothing != 0)
          target = (1 - smoothing) * target + share * sum_over<V>(plan.n, [&](std::int64_t i) {
                                                return row[static_cast<std::size_t>(i)] - sums.top;
                                              });
        loss = std::log(sums.sum) - target;
      }
      output_data<T>(call, 0)[r] = convert_element<T>(loss);
    });
  });
}

void host_probabilities(const OpCall& call) {
  const auto plan = plan_of(call);
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    for_rows(plan, [&](std::int64_t r, std::int64_t start) {
      std::vector<V> row(static_cast<std::size_t>(plan.n)), p(row.size());
      load_row(input_data<T>(call, 0) + start, 1, row);
      load_row(input_data<T>(call, 1) + start, 1, p);
      const RowSums<V> sums(row);
      const V shift = std::log(sums.sum);
      const V loss = sum_over<V>(plan.n, [&](std::int64_t i) {
        const auto k = static_cast<std::size_t>(i);
        return p[k] == 0 ? V(0) : p[k] * (shift - (row[k] - sums.top));
      });
      output_data<T>(call, 0)[r] = convert_element<T>(loss);
    });
  });
}

// ---- reference: the logarithm of the softmax of a row

std::vector<double> log_probabilities(const RefArray& x, std::int64_t row) {
  const auto n = static_cast<std::size_t>(x.shape[1]);
  const double* from = x.values.data() + static_cast<std::size_t>(row) * n;
  double top = from[0], sum = 0;
  for (std::size_t i = 0; i < n; ++i) top = std::max(top, from[i]);
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(from[i] - top);
  std::vector<double> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = from[i] - top - std::log(sum);
  return result;
}

std::vector<double> smoothed(const RefCall& call, std::int64_t label) {
  const auto n = static_cast<std::size_t>(call.inputs[0].shape[1]);
  const double smoothing = call.attributes.number("label_smoothing");
  std::vector<double> target(n, smoothing / static_cast<double>(n));
  target[static_cast<std::size_t>(label)] += 1 - smoothing;
  return target;
}

void reference(RefCall& call, bool from_labels, bool backward) {
  const auto n = static_cast<std::size_t>(call.inputs[0].shape[1]);
  for (std::int64_t row = 0; row < call.inputs[0].shape[0]; ++row) {
    const auto r = static_cast<std::size_t>(row);
    const auto log_p = log_probabilities(call.inputs[0], row);
    std::vector<double> target;
    if (from_labels) {
      const auto label = static_cast<std::int64_t>(call.inputs[1].values[r]);
      if (label == call.attributes.integer("ignore_index")) continue;  // zero already
      target = smoothed(call, label);
    } else {
      const auto* p = call.inputs[1].values.data() + r * n;
      target.assign(p, p + n);
    }
    auto& out = call.outputs[0].values;
    for (std::size_t i = 0; i < n; ++i) {
      if (backward)
        out[r * n + i] = call.inputs[2].values[r] * (std::exp(log_p[i]) - target[i]);
      else if (target[i] != 0)
        out[r] -= target[i] * log_p[i];
    }
  }
}

// ---- samples

OpSample label_sample(std::string id, std::int64_t rows, std::int64_t n, double smoothing,
                      bool ignore, bool backward, DType labels = DType::int64) {
  SampleInput x{{rows, n}, Fill::uniform, -4, 4};
  SampleInput y{{rows}, Fill::integers, ignore ? -1.0 : 0.0, static_cast<double>(n - 1), labels};
  SampleInput dy{{rows}};
  OpSample sample{std::move(id), {x, y}};
  if (backward) sample.inputs.push_back(dy);
  sample.attributes = {{"label_smoothing", smoothing},
                       {"ignore_index", std::int64_t{ignore ? -1 : -100}}};
  return sample;
}

std::vector<OpSample> label_samples(bool backward) {
  std::vector<OpSample> all;
  int number = 0;
  for (const std::int64_t n : {1, 2, 3, 10, 15, 16, 17, 64, 65, 257, 1000})
    for (const double smoothing : {0.0, 0.1}) {
      const bool ignore = ++number % 3 == 0;
      all.push_back(label_sample(
          fmt::format("5x{}_{}{}", n, smoothing == 0 ? "plain" : "smooth", ignore ? "_ignore" : ""),
          5, n, smoothing, ignore, backward, number % 4 == 1 ? DType::int32 : DType::int64));
    }
  all.push_back(label_sample("131x7", 131, 7, 0, true, backward));
  all.push_back(label_sample("1x1", 1, 1, 0, false, backward));
  all.push_back(label_sample("0x4", 0, 4, 0, false, backward));
  all.push_back(label_sample("67x33_full_smoothing", 67, 33, 1, false, backward));
  all.push_back(label_sample("1x257_int32", 1, 257, 0, false, backward, DType::int32));
  all.push_back(label_sample("31x2_smooth", 31, 2, 0.3, false, backward));
  all.push_back(label_sample("2x33_ignore", 2, 33, 0, true, backward));
  all.push_back(label_sample("17x31_smooth_ignore", 17, 31, 0.1, true, backward));
  all.push_back(label_sample("0x1_smooth", 0, 1, 0.1, false, backward));
  if (backward) return all;
  auto far = label_sample("3x3_large", 3, 3, 0, false, false);
  far.inputs[0].fill = Fill::values;
  far.inputs[0].values = {800, 0, -800, 1e4, 1e4, 1e4, -INFINITY, 5, 3};
  far.inputs[1].fill = Fill::values;
  far.inputs[1].values = {0, 1, 2};
  far.gradient = false;
  all.push_back(far);
  return all;
}

std::vector<OpSample> probability_samples() {
  std::vector<OpSample> all;
  const auto add = [&](std::int64_t rows, std::int64_t n) {
    all.push_back({fmt::format("{}x{}", rows, n),
                   {{{rows, n}, Fill::uniform, -4, 4}, {{rows, n}, Fill::uniform, 0.1, 1}}});
  };
  for (const std::int64_t n : {1, 2, 3, 10, 15, 16, 17, 31, 33, 65, 257})
    for (const std::int64_t rows : {1, 6}) add(rows, n);
  add(0, 3), add(0, 1), add(131, 7), add(33, 5), add(17, 16), add(2, 129), add(65, 1), add(3, 63);
  OpSample zeros{"zero_at_minus_inf", {{{2, 3}}, {{2, 3}}}, {}, false};
  zeros.inputs[0].fill = zeros.inputs[1].fill = Fill::values;
  zeros.inputs[0].values = {-INFINITY, 1, 2, 3, -INFINITY, 1};
  zeros.inputs[1].values = {0, 0.5, 0.5, 1, 0, 0};
  all.push_back(zeros);
  return all;
}

Tolerance tolerance(const OpSpec& spec) {
  return {8, 16 + static_cast<double>(spec.shape(0)[1]) / 8};
}

OpDef labels_op(bool backward) {
  OpDef op;
  op.name = backward ? "cross_entropy_backward" : "cross_entropy";
  op.summary = backward ? "the gradient of cross_entropy: dlosses (softmax - target)"
                        : "-log(softmax) at the label of each row, without the softmax";
  op.dtypes = kFloats;
  op.infer = [backward](const OpSpec& spec) -> std::vector<TensorSpec> {
    check_logits(spec);
    check_labels(spec);
    return {{backward ? spec.shape(0) : Shape{spec.shape(0)[0]}, spec.dtype()}};
  };
  op.reference = [backward](RefCall& call) { reference(call, true, backward); };
  op.host = [backward](const OpCall& call) { host_labels(call, backward); };
  op.samples = [backward] { return label_samples(backward); };
  op.tolerance = tolerance;
  op.tolerance_reason = "exponentials of 3 ulps, and a sum over the classes";
  return op;
}

}  // namespace

std::vector<OpDef> cross_entropy_ops() {
  auto forward = labels_op(false), backward = labels_op(true);
  set_row_variants(forward, "cross_entropy.item", "cross_entropy.group", kPath, plan_of,
                   run_labels);
  forward.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor(), Tensor()};
    return {apply("cross_entropy_backward", {g.inputs[0], g.inputs[1], g.dy()}, g.attributes),
            Tensor()};
  };
  forward.saves = SavedTensors::always(~0u, 0);
  set_row_variants(
      backward, "cross_entropy_backward.item", "cross_entropy_backward.group", kPath, plan_of,
      [](const OpCall& call, Team team) { run_plain("cross_entropy_backward", call, team); });

  OpDef soft;
  soft.name = "cross_entropy_probabilities";
  soft.summary = "-sum(p log(softmax(x))) of each row";
  soft.dtypes = kFloats;
  soft.infer = [](const OpSpec& spec) -> std::vector<TensorSpec> {
    check_logits(spec);
    check_same(spec, 0, 1);
    return {{Shape{spec.shape(0)[0]}, spec.dtype()}};
  };
  soft.reference = [](RefCall& call) { reference(call, false, false); };
  soft.host = host_probabilities;
  set_row_variants(
      soft, "cross_entropy_probabilities.item", "cross_entropy_probabilities.group", kPath, plan_of,
      [](const OpCall& call, Team team) { run_plain("cross_entropy_probabilities", call, team); });
  soft.backward = [](const OpGradient& g) -> std::vector<Tensor> {
    if (!g.dy()) return {Tensor(), Tensor()};
    const auto &x = g.inputs[0], &p = g.inputs[1];
    const auto dy = g.dy().reshape({x.shape()[0], 1});
    Tensor dx, dp;
    if (g.wants(0))
      dx = ops::mul(dy, ops::sub(ops::mul(ops::softmax(x, 1), ops::sum(p, {1}, true)), p));
    if (g.wants(1)) dp = ops::mul(ops::neg(dy), ops::log_softmax(x, 1));
    return {dx, dp};
  };
  soft.samples = probability_samples;
  soft.tolerance = [](const OpSpec& spec) {
    const auto n = static_cast<double>(spec.shape(0)[1]);
    return Tolerance{8, 16 + 4 * n};
  };
  soft.tolerance_reason = "each term p (log(sum) - x) is rounded; they are about 5";
  return {forward, backward, soft};
}

}  // namespace netcl
