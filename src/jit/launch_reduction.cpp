#include <algorithm>

#include "jit/kernel_memo.h"
#include "jit/launch_shape.h"
#include "jit/reduce_group.h"
#include "jit/stats.h"
#include "tensor/access.h"

namespace netcl::fusion {
namespace {

constexpr std::int64_t kChunkElements = 4096;  // of a part: less is not worth a work-item
constexpr std::int64_t kMaxParts = 256;

// How many work-items share a result: enough to fill the device, none with too little to do.
std::int64_t parts_of(const ReducedChain& chain, const ReductionShape& shape,
                      const ExtendedDeviceProfile& profile) {
  const auto& plan = chain.plan;
  const auto strips = static_cast<std::int64_t>(ceil_div(plan.inner, shape.rows ? 1 : shape.vec));
  const auto owners = plan.outer * strips;
  const std::int64_t units = profile.compute_units;
  if (profile.is_cpu) {
    const auto width = std::min<std::int64_t>(plan.inner, shape.rows ? 1 : shape.vec);
    const auto most = static_cast<std::int64_t>(ceil_div(plan.reduced * width, kChunkElements));
    return std::clamp<std::int64_t>((4 * units + owners - 1) / owners, 1,
                                    std::max<std::int64_t>(most, 1));
  }
  // Neighbours in memory belong to neighbour items: even short rows are shared.
  const auto wanted = std::max<std::int64_t>(units * 256 / owners, shape.rows ? 32 : 1);
  return std::clamp<std::int64_t>(
      wanted, 1, std::min(kMaxParts, std::max<std::int64_t>(plan.reduced / shape.vec, 1)));
}

std::string key_of(const ReducedChain& chain, const ElementProgram& described,
                   const ReductionShape& shape) {
  auto key = chain.program.key() + "reduced";
  const auto& last = chain.program.last;
  for (const auto part :
       {static_cast<int>(chain.kind), static_cast<int>(chain.dtype), static_cast<int>(last.kind),
        last.index, shape.vec, shape.rows ? 1 : 0, shape.chunked ? 1 : 0,
        static_cast<int>(described.rank), described.wide ? 1 : 0})
    key.append(reinterpret_cast<const char*>(&part), sizeof part);
  return key;
}

}  // namespace

Tensor launch_reduction(const Queue& queue, const ReducedChain& chain) {
  const auto& plan = chain.plan;
  const auto& program = chain.program;
  const auto& profile = device_profile(queue);
  const auto args = program.arguments();
  const auto loops = program.loops();
  ElementProgram described;
  described.compute = program.compute;
  describe_operands(args, loops, described);
  described.own_functions = profile.is_cpu;
  ReductionShape shape{1, plan.inner == 1, profile.is_cpu};
  if (described.rank == 0 && program.vectors)
    shape.vec = vector_width(profile, program.compute, args);
  // Sums of sums of wider vectors of doubles do not fit the registers of GPUs.
  if (!profile.is_cpu && program.compute == DType::float64) shape.vec = std::min(shape.vec, 2);
  const auto kernels =
      memo_kernels(queue, program, key_of(chain, described, shape), {"fused_reduce", "fused_parts"},
                   [&] { return reduction_source(chain, described, shape); });

  const auto parts = parts_of(chain, shape, profile);
  const auto y = Tensor::empty(queue, Shape{plan.results()}, chain.dtype);
  const auto states =
      parts == 1 ? y : Tensor::empty(queue, Shape{plan.results() * parts}, program.compute);
  std::vector<KernelArg> list;
  for (const auto& input : args.inputs) list.emplace_back(TensorAccess::buffer(input));
  list.emplace_back(states.buffer());
  list.emplace_back(y.buffer());
  for (const auto size : {plan.outer, plan.reduced, plan.inner, parts}) list.emplace_back(size);
  std::vector<Long8> vectors;
  const auto values = element_arguments(described, args, loops, vectors);
  list.insert(list.end(), values.begin(), values.end());
  const auto strips = static_cast<std::int64_t>(ceil_div(plan.inner, shape.rows ? 1 : shape.vec));
  const auto enqueue = [&](const KernelPtr& kernel, std::int64_t items, std::int64_t local,
                           const std::vector<KernelArg>& arguments) {
    const auto group = static_cast<std::int64_t>(clamped_local(kernel, local));
    enqueue_kernel(queue, *kernel, WorkSize(rounded_up(items, group)), WorkSize(group), arguments);
    counters().launches.fetch_add(1, std::memory_order_relaxed);
  };
  // Few items are shared out one by one; many in groups, each of which costs a start.
  const auto items = plan.outer * parts * strips;
  const std::int64_t units = profile.compute_units;
  enqueue(kernels[0], items, profile.is_cpu && items < 512 * units ? 1 : 64, list);
  if (parts > 1)
    enqueue(kernels[1], plan.results(), 64,
            {states.buffer(), y.buffer(), plan.outer, plan.reduced, plan.inner, parts});
  return y;
}

}  // namespace netcl::fusion
