// The mean of the losses of a batch in one launch; without it cross entropy is followed by a sum, a
// comparison, a conversion, a count and a division.
#include "base/check.h"
#include "base/format.h"
#include "ops/dispatch.h"
#include "ops/softmax/family.h"
#include "ops/softmax/host_rows.h"
#include "ops/softmax/rows.h"

namespace netcl {
namespace {

constexpr const char* kPath = "ops/softmax/labelled_mean.cl";

RowPlan plan_of(const OpCall& call) { return {1, call.inputs[1].numel(), 1}; }

std::vector<TensorSpec> infer(const OpSpec& spec, bool backward) {
  check_floating(spec);
  const auto &values = spec.shape(0), &labels = spec.shape(1);
  check<ShapeError>(labels.rank() == 1 && labels[0] > 0,
                    "[{}] the labels must be (rows), at least one: {}", spec.op.name,
                    labels.to_string());
  check<ShapeError>(values == (backward ? Shape{} : labels),
                    "[{}] the values must have the shape {}: {}", spec.op.name,
                    (backward ? Shape{} : labels).to_string(), values.to_string());
  const auto dtype = spec.dtype(1);
  check<DtypeError>(dtype == DType::int32 || dtype == DType::int64,
                    "[{}] the labels must be int32 or int64: {}", spec.op.name, name_of(dtype));
  return {{backward ? labels : Shape{}, spec.dtype()}};
}

void run(const OpCall& call, Team team, const char* name) {
  const auto plan = plan_of(call);
  const auto labels = call.inputs[1].astype(DType::int64);
  OpArgs args;
  args.tensor(call.inputs[0]).tensor(labels).tensor(call.outputs[0]);
  args.value(plan.outer).value(plan.n).value(call.attributes.integer("ignore_index"));
  enqueue_teams(call.queue, team_kernel(call.queue, kPath, name, call.dtype(), team), args, team,
                plan.rows());
}

void host(const OpCall& call, bool backward) {
  const auto n = call.inputs[1].numel();
  const auto ignored = call.attributes.integer("ignore_index");
  const auto labels = call.inputs[1].astype(DType::int64);
  const auto* label = static_cast<const std::int64_t*>(labels.host_data());
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    const auto* from = input_data<T>(call, 0);
    auto* to = output_data<T>(call, 0);
    const V count = sum_over<V>(n, [&](std::int64_t i) { return V(label[i] != ignored ? 1 : 0); });
    if (backward) {
      const auto share = convert_element<T>(static_cast<V>(from[0]) / count);
      std::fill(to, to + n, share);
    } else {
      const V total = sum_over<V>(n, [&](std::int64_t i) { return static_cast<V>(from[i]); });
      to[0] = convert_element<T>(total / count);
    }
  });
}

void reference(RefCall& call, bool backward) {
  double total = 0, count = 0;
  const auto ignored = static_cast<double>(call.attributes.integer("ignore_index"));
  for (const auto label : call.inputs[1].values) count += label != ignored ? 1 : 0;
  auto& y = call.outputs[0].values;
  if (backward) {
    for (auto& one : y) one = call.inputs[0].values[0] / count;
    return;
  }
  for (const auto loss : call.inputs[0].values) total += loss;
  y[0] = total / count;
}

std::vector<OpSample> samples(bool backward) {
  std::vector<OpSample> all;
  for (const std::int64_t n :
       {1, 2, 3, 5, 10, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 255, 256, 257, 1000})
    for (const bool ignore : {false, true}) {
      if (ignore && n < 10) continue;  // there has to be one that counts
      OpSample sample{fmt::format("{}{}", n, ignore ? "_ignore" : ""),
                      {{backward ? Shape{} : Shape{n}},
                       {{n}, Fill::integers, 0, 4, n % 2 == 0 ? DType::int64 : DType::int32}}};
      sample.attributes = {{"ignore_index", std::int64_t{ignore ? 2 : -100}}};
      all.push_back(std::move(sample));
    }
  return all;
}

OpDef mean_op(bool backward) {
  OpDef op;
  op.name = backward ? "labelled_mean_backward" : "labelled_mean";
  op.summary = backward ? "the gradient of labelled_mean: dy by the number of labels that count"
                        : "the sum of losses by the number of labels that are not ignored";
  op.dtypes = kFloats;
  op.infer = [backward](const OpSpec& spec) { return infer(spec, backward); };
  op.reference = [backward](RefCall& call) { reference(call, backward); };
  op.host = [backward](const OpCall& call) { host(call, backward); };
  op.samples = [backward] { return samples(backward); };
  // Each is linear, and the other one its transpose.
  op.backward = [other = backward ? "labelled_mean" : "labelled_mean_backward"](
                    const OpGradient& g) -> std::vector<Tensor> {
    if (!g.wants(0) || !g.dy()) return {Tensor(), Tensor()};
    return {apply(other, {g.dy(), g.inputs[1]}, g.attributes), Tensor()};
  };
  op.saves = SavedTensors::always(2u, 0);
  return op;
}

}  // namespace

std::vector<OpDef> labelled_mean_ops() {
  auto forward = mean_op(false), backward = mean_op(true);
  set_row_variants(forward, "labelled_mean.item", "labelled_mean.group", kPath, plan_of,
                   [](const OpCall& call, Team team) { run(call, team, "labelled_mean"); });
  forward.tolerance = [](const OpSpec& spec) {
    return Tolerance{8, 8 + static_cast<double>(spec.shape(0)[0]) / 8};
  };
  forward.tolerance_reason = "a sum over the rows";
  set_row_variants(
      backward, "labelled_mean_backward.item", "labelled_mean_backward.group", kPath, plan_of,
      [](const OpCall& call, Team team) { run(call, team, "labelled_mean_backward"); });
  backward.tolerance = [](const OpSpec&) { return Tolerance{4, 4}; };
  backward.tolerance_reason = "one division";
  return {forward, backward};
}

}  // namespace netcl
