#include "jit/reduce_group.h"

#include "jit/group_program.h"
#include "ops/dispatch.h"

namespace netcl::fusion {

void run_reduction(const Schedule& schedule, const Group& group) {
  auto items = group.items;
  const int last = items.back();
  items.pop_back();
  auto with_value = schedule;
  const auto& reduction = schedule.items[static_cast<std::size_t>(last)];
  with_value.items[static_cast<std::size_t>(reduction.producers[0])].stored = true;
  run_elements(with_value, group, items);
  auto& node = *reduction.node;
  node.arrive(call_op(node.op, node.inputs, node.attributes)[0]);
}

}  // namespace netcl::fusion
