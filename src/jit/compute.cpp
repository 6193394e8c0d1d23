#include "jit/compute.h"

#include "base/check.h"
#include "base/log.h"
#include "jit/epilogue.h"
#include "jit/explain.h"
#include "jit/group_program.h"
#include "jit/reduce_group.h"
#include "jit/stats.h"
#include "ops/dispatch.h"

namespace netcl::fusion {
namespace {

Node& node_at(const Schedule& schedule, int i) {
  return *schedule.items[static_cast<std::size_t>(i)].node;
}

void run_single(Node& node) { node.arrive(call_op(node.op, node.inputs, node.attributes)[0]); }

// One by one, as without fusion; every result is stored.
void run_apart(const Schedule& schedule, const std::vector<int>& items) {
  for (const int i : items) run_single(node_at(schedule, i));
}

bool fits(const GroupProgram& program) { return program.parameter_bytes() <= kMaxParameterBytes; }

void arrive_results(const Schedule& schedule, const GroupProgram& program,
                    const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    node_at(schedule, program.results[i].item).arrive(results[i]);
}

// Too many parameters for one kernel: two of them, and what the second needs is stored.
void run_halves(Schedule schedule, const Group& group, const std::vector<int>& items) {
  const auto middle = items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  const std::vector<int> first(items.begin(), middle), second(middle, items.end());
  for (const int i : second)
    for (const int from : schedule.items[static_cast<std::size_t>(i)].producers)
      if (std::find(first.begin(), first.end(), from) != first.end())
        schedule.items[static_cast<std::size_t>(from)].stored = true;
  run_elements(schedule, group, first);
  run_elements(schedule, group, second);
}

void count_group(std::size_t nodes) {
  counters().groups.fetch_add(1, std::memory_order_relaxed);
  counters().launches.fetch_add(1, std::memory_order_relaxed);
  counters().fused_nodes.fetch_add(nodes, std::memory_order_relaxed);
}

void run_group(const Schedule& schedule, const Group& group) {
  switch (group.kind) {
    case Group::Kind::elements:
      return run_elements(schedule, group, group.items);
    case Group::Kind::reduction:
      return run_reduction(schedule, group);
    case Group::Kind::product:
      explain_product(schedule, group);
      return run_product(schedule, group);
    case Group::Kind::single:
      explain_single(schedule, group);
      return run_apart(schedule, group.items);
  }
}

}  // namespace

std::vector<Tensor> allocate_results(const Queue& queue, const GroupProgram& program) {
  std::vector<Tensor> results;
  for (const auto& result : program.results)
    results.push_back(Tensor::empty(queue, Shape{program.numel}, result.dtype));
  return results;
}

void run_elements(const Schedule& schedule, const Group& group, const std::vector<int>& items) {
  if (items.size() == 1) {
    explain_single(schedule, group);
    return run_apart(schedule, items);
  }
  const auto program = build_program(schedule, group, items);
  const auto& queue = node_at(schedule, items[0]).queue;
  if (program.results.empty()) return;
  if (!fits(program)) return run_halves(schedule, group, items);
  if (!queue.is_cpu() && program.loops().sizes.size() > kMaxElementAxes) {
    counters().fallbacks.fetch_add(1, std::memory_order_relaxed);
    return run_apart(schedule, items);
  }
  explain_elements(schedule, group, items, program);
  try {
    const auto results =
        queue.is_cpu() ? run_on_host(queue, program) : launch_elements(queue, program);
    count_group(items.size());
    arrive_results(schedule, program, results);
  } catch (const BuildError& error) {
    log::warn_once(
        fmt::format("[jit] a fused kernel is computed op by op instead: {}", error.what()));
    counters().fallbacks.fetch_add(1, std::memory_order_relaxed);
    run_apart(schedule, items);
  }
}

void compute_nodes(const std::vector<NodePtr>& targets) {
  const InsideOps inside;
  const auto schedule = make_schedule(targets);
  for (const auto& group : schedule.groups)
    if (!group.items.empty()) run_group(schedule, group);
}

}  // namespace netcl::fusion
