#include "jit/explain.h"

#include "base/format.h"
#include "jit/launch_shape.h"
#include "jit/stats.h"

namespace netcl {
namespace fusion {
namespace {

std::string text_of(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", name_of(dtype), shape.to_string());
}

const Node& node_at(const Schedule& schedule, int i) {
  return *schedule.items[static_cast<std::size_t>(i)].node;
}

std::uint64_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
}

void add_output(FusedGroup& group, const Node& node) {
  group.outputs.push_back(text_of(node.spec.dtype, node.spec.shape));
  group.bytes_written += bytes_of(node.spec.dtype, node.spec.shape);
}

// What a group reads from memory, as the nodes' own kernels do.
void add_inputs(FusedGroup& to, const Schedule& schedule, const Group& group) {
  for (const int i : group.items) {
    const auto& item = schedule.items[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < item.node->inputs.size(); ++k) {
      const auto& input = item.node->inputs[k];
      const int from = item.producers[k];
      const bool inside =
          from >= 0 && schedule.items[static_cast<std::size_t>(from)].group == item.group;
      if (!input || inside) continue;
      to.inputs.push_back(text_of(input.dtype(), input.shape()));
      to.bytes_read += bytes_of(input.dtype(), input.shape());
    }
  }
}

void add_plain(const Schedule& schedule, const Group& group) {
  FusedGroup entry;
  for (const int i : group.items) entry.ops.push_back(node_at(schedule, i).op.name);
  add_inputs(entry, schedule, group);
  add_output(entry, node_at(schedule, group.items.back()));
  entry.reason = join(group.reasons, "; ");
  t_explanation->groups.push_back(std::move(entry));
}

}  // namespace

Counters& counters() {
  static Counters all;
  return all;
}

void explain_elements(const Schedule& schedule, const Group& group, const std::vector<int>& items,
                      const GroupProgram& program) {
  if (t_explanation == nullptr) return;
  FusedGroup entry;
  for (const int i : items) entry.ops.push_back(node_at(schedule, i).op.name);
  for (const auto& operand : program.operands)
    entry.inputs.push_back(text_of(operand.tensor.dtype(), operand.tensor.shape()));
  for (const auto& result : program.results) add_output(entry, node_at(schedule, result.item));
  entry.bytes_read = program.bytes_read();
  entry.source = elements_source(program);
  entry.reason = join(group.reasons, "; ");
  t_explanation->groups.push_back(std::move(entry));
}

void explain_reduction(const Schedule& schedule, const Group& group, const ReducedChain& chain) {
  if (t_explanation == nullptr) return;
  FusedGroup entry;
  for (const int i : group.items) entry.ops.push_back(node_at(schedule, i).op.name);
  for (const auto& operand : chain.program.operands)
    entry.inputs.push_back(text_of(operand.tensor.dtype(), operand.tensor.shape()));
  add_output(entry, node_at(schedule, group.items.back()));
  entry.bytes_read = chain.program.bytes_read();
  const auto described = described_without_device(chain.program);
  const int vec = described.rank > 0 || !chain.program.vectors ? 1 : 4;
  entry.source = reduction_source(chain, described, {vec, chain.plan.inner == 1, false});
  entry.reason = "a reduction ends its chain";
  t_explanation->groups.push_back(std::move(entry));
}

void explain_single(const Schedule& schedule, const Group& group) {
  if (t_explanation != nullptr) add_plain(schedule, group);
}

void explain_product(const Schedule& schedule, const Group& group) {
  if (t_explanation != nullptr) add_plain(schedule, group);
}

}  // namespace fusion

FusionStats fusion_stats() {
  const auto& c = fusion::counters();
  return {c.deferred, c.groups, c.launches, c.fused_nodes, c.compiled, c.fallbacks};
}

Explanation explain_call(const std::function<void()>& function) {
  Explanation result;
  struct Restore {
    Explanation* previous = fusion::t_explanation;
    ~Restore() { fusion::t_explanation = previous; }
  } restore;
  fusion::t_explanation = &result;
  function();
  return result;
}

std::string Explanation::to_string(bool with_source) const {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& group = groups[i];
    text += fmt::format("{}. {}\n   reads {} ({} bytes)\n   writes {} ({} bytes)\n   ends: {}\n",
                        i + 1, join(group.ops, " -> "), join(group.inputs, ", "), group.bytes_read,
                        join(group.outputs, ", "), group.bytes_written, group.reason);
    if (with_source && !group.source.empty()) text += group.source;
  }
  return text;
}

}  // namespace netcl
