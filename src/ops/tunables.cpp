// The ops as problems for `netcl tune`: their sizes of real work, with the variant that the
// selector takes for them on the device.
#include "netcl/tunables.h"

#include "base/format.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "tensor/kernels.h"

namespace netcl {
namespace {

Tensor make_tensor(const Queue& queue, const SampleInput& input, DType dtype, std::uint64_t seed) {
  if (!input.present) return {};
  const auto wanted = input.dtype.value_or(dtype);
  if (!is_floating(wanted)) return Tensor::from_shape(queue, input.shape, wanted);
  return Tensor::random(queue, input.shape, seed, Distribution::uniform, wanted);
}

// Empty when the variant that would run has nothing to tune.
std::vector<TunableProblem> problem_of(const OpDef& op, const OpSample& sample,
                                       const Queue& queue) {
  const auto dtype = sample.dtypes.empty() ? op.dtypes[0] : sample.dtypes[0];
  OpSpec spec{op, {}, sample.attributes};
  std::vector<Tensor> inputs;
  for (const auto& input : sample.inputs) {
    inputs.push_back(make_tensor(queue, input, dtype, inputs.size() + 1));
    spec.inputs.push_back({input.shape, input.dtype.value_or(dtype), input.present});
  }
  std::vector<Tensor> outputs;
  for (const auto& output : op.infer(spec))
    outputs.push_back(Tensor::from_shape(queue, output.shape, output.dtype));
  const OpCall call{op, queue, std::move(inputs), sample.attributes, std::move(outputs)};
  const auto choice = choose_variant(call);
  if (!choice.variant->space) return {};
  auto problem = tunable_problem(call, *choice.variant, choice.config);
  problem.op = op.name;
  problem.label = fmt::format("{}, {}, {}", choice.variant->name, name_of(dtype), sample.id);
  return {problem};
}

}  // namespace

void register_builtin_tunables() {
  register_tensor_tunables();
  for (const auto* op : all_ops()) {
    if (!op->tuning) continue;
    register_tunable_op(op->name, [op](const Queue& queue) {
      std::vector<TunableProblem> problems;
      for (const auto& sample : op->tuning())
        for (auto& problem : problem_of(*op, sample, queue)) problems.push_back(std::move(problem));
      return problems;
    });
  }
}

}  // namespace netcl
