#include "jit/reduce_group.h"

#include <algorithm>

#include "jit/explain.h"
#include "jit/stats.h"
#include "ops/dispatch.h"

namespace netcl::fusion {
namespace {

// The chain first, into memory, then the op.
void run_in_two(const Schedule& schedule, const Group& group, const std::vector<int>& chain) {
  auto with_value = schedule;
  const auto& reduction = schedule.items[static_cast<std::size_t>(group.items.back())];
  with_value.items[static_cast<std::size_t>(reduction.producers[0])].stored = true;
  run_elements(with_value, group, chain);
  auto& node = *reduction.node;
  node.arrive(call_op(node.op, node.inputs, node.attributes)[0]);
}

// Axes that are not neighbours: the loop runs in the order that makes them so. False when the
// axes of the reduction are not those of the loop.
bool reorder(ReducedChain& chain, const Shape& shape) {
  if (chain.plan.order.empty()) return true;
  auto& program = chain.program;
  if (loop_of(shape) != program.loop) return false;
  std::vector<std::size_t> place(static_cast<std::size_t>(shape.rank()));  // of an axis in the loop
  std::size_t next = 0;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) place[static_cast<std::size_t>(axis)] = next++;
  std::vector<std::size_t> order;
  for (const auto axis : chain.plan.order)
    if (shape[axis] != 1) order.push_back(place[static_cast<std::size_t>(axis)]);
  const auto permuted = [&](const std::vector<std::int64_t>& from) {
    std::vector<std::int64_t> to;
    for (const auto axis : order) to.push_back(from[axis]);
    return to;
  };
  program.loop = permuted(program.loop);
  for (auto& operand : program.operands) operand.strides = permuted(operand.strides);
  return true;
}

}  // namespace

void run_reduction(const Schedule& schedule, const Group& group) {
  auto items = group.items;
  const auto& reduction = *schedule.items[static_cast<std::size_t>(items.back())].node;
  items.pop_back();
  const auto& info = reduction_info(reduction.op.name);
  const auto& shape = reduction.inputs[0].shape();
  ReducedChain chain{build_program(schedule, group, items), info.kind,
                     plan_reduction(shape, reduced_axes(info, reduction.attributes, shape.rank())),
                     reduction.spec.dtype};
  const auto& queue = reduction.queue;
  if (!reorder(chain, shape) || chain.program.loops().sizes.size() > kMaxElementAxes ||
      chain.program.parameter_bytes() + 64 > kMaxParameterBytes)
    return run_in_two(schedule, group, items);
  explain_reduction(schedule, group, chain);
  try {
    const auto result =
        queue.is_cpu() ? reduce_on_host(queue, chain) : launch_reduction(queue, chain);
    counters().groups.fetch_add(1, std::memory_order_relaxed);
    counters().fused_nodes.fetch_add(group.items.size(), std::memory_order_relaxed);
    schedule.items[static_cast<std::size_t>(group.items.back())].node->arrive(result);
  } catch (const BuildError&) {
    counters().fallbacks.fetch_add(1, std::memory_order_relaxed);
    run_in_two(schedule, group, items);
  }
}

}  // namespace netcl::fusion
