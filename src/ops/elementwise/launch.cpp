// What element programs are launched with: accesses, arguments, and how much a work-item does.
#include <algorithm>

#include "base/check.h"
#include "ops/elementwise/program.h"
#include "ops/memory_hints.h"
#include "ops/vector_lanes.h"
#include "tensor/access.h"

namespace netcl {
namespace {

using Access = ElementOperand::Access;

// Of a work-item that walks: a start costs less than the least, and the most leaves enough of them
// for all cores to end together.
constexpr std::int64_t kLeastPart = 4096, kMostPart = 16384;
constexpr std::int64_t kPartsPerUnit = 8;
constexpr std::int64_t kLeastRun = 8;  // shorter inner axes are mostly rests

ElementOperand::Inner inner_of(const Strides& steps) {
  using Inner = ElementOperand::Inner;
  if (steps.empty()) return Inner::any;
  return steps.back() == 1 ? Inner::one : steps.back() == 0 ? Inner::zero : Inner::any;
}

}  // namespace

std::int64_t operand_bits(const ElementOperand& operand) {
  return static_cast<std::int64_t>(operand.dtype) * 16 +
         static_cast<std::int64_t>(operand.access) * 4 + static_cast<std::int64_t>(operand.inner) +
         1;
}

bool takes_vectors(const ElementProgram& program, const BroadcastLoops& loops,
                   const ExtendedDeviceProfile& profile) {
  if (program.rank == 0) return true;
  const bool whole =
      std::all_of(program.outputs.begin(), program.outputs.end(), [](const ElementOperand& output) {
        return output.access == Access::linear || output.inner == ElementOperand::Inner::one;
      });
  return profile.is_cpu && whole && !loops.sizes.empty() && loops.sizes.back() >= kLeastRun;
}

std::int64_t walking_part(std::int64_t numel, const ExtendedDeviceProfile& profile) {
  const std::int64_t items = kPartsPerUnit * std::max<std::int64_t>(profile.compute_units, 1);
  auto part = kLeastPart;
  while (part < kMostPart && part * items < numel) part *= 2;
  return part;
}

int element_lanes(const ElementArgs& args, DType compute, int wanted,
                  const ExtendedDeviceProfile& profile) {
  auto lanes = vector_lanes(profile, wanted, compute);
  for (const auto* tensors : {&args.inputs, &args.outputs})
    for (const auto& tensor : *tensors)
      if (tensor) lanes = vector_lanes(profile, lanes, tensor.dtype());
  return static_cast<int>(lanes);
}

ElementShape walking_shape(const ElementArgs& args, DType compute, int vec,
                           const ExtendedDeviceProfile& profile) {
  ElementShape shape{.vec = element_lanes(args, compute, vec, profile), .local = 1};
  shape.part = walking_part(args.outputs[0].numel(), profile);
  const bool any = std::any_of(args.outputs.begin(), args.outputs.end(),
                               [&](const Tensor& output) { return output.dtype() == compute; });
  const bool large = outgrow_caches(bytes_of(args.inputs) + bytes_of(args.outputs), profile);
  shape.fetches = large && gains_by_fetching(profile);
  shape.streams = any && large;
  return shape;
}

BroadcastLoops element_loops(const ElementArgs& args) {
  const auto& shape = args.outputs[0].shape();
  std::vector<Strides> strides;
  for (const auto& input : args.inputs)
    strides.push_back(input ? broadcast_strides(input.shape(), input.strides(), shape)
                            : Strides(static_cast<std::size_t>(shape.rank()), 0));
  for (const auto& output : args.outputs) strides.push_back(output.strides());
  return plan_broadcast(shape, std::move(strides));
}

Access element_access(const BroadcastLoops& loops, std::size_t operand, bool is_input) {
  if (loops.is_linear(operand)) return Access::linear;
  const auto& steps = loops.strides[operand];
  const bool stays =
      is_input && std::all_of(steps.begin(), steps.end(), [](auto step) { return step == 0; });
  return stays ? Access::single : Access::strided;
}

void describe_operands(const ElementArgs& args, const BroadcastLoops& loops,
                       ElementProgram& program) {
  const auto access = [&](std::size_t k) {
    return element_access(loops, k, k < args.inputs.size());
  };
  bool strided = false;
  program.inputs.clear();
  program.outputs.clear();
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const auto& input = args.inputs[i];
    program.inputs.push_back(
        input ? ElementOperand{input.dtype(), access(i), inner_of(loops.strides[i])}
              : ElementOperand{program.compute, Access::scalar});
    strided |= input && program.inputs.back().access == Access::strided;
  }
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const auto k = args.inputs.size() + i;
    program.outputs.push_back({args.outputs[i].dtype(), access(k), inner_of(loops.strides[k])});
    strided |= program.outputs.back().access == Access::strided;
  }
  program.rank = strided ? std::max<std::size_t>(loops.sizes.size(), 1) : 0;
  std::int64_t numel = 1;
  for (const auto size : loops.sizes) numel *= size;
  program.wide = numel >= INT32_MAX;
  check<ShapeError>(program.rank <= kMaxElementAxes,
                    "[elementwise] views may need at most {} axes that cannot be merged: {}",
                    kMaxElementAxes, program.rank);
}

std::vector<KernelArg> element_arguments(const ElementProgram& program, const ElementArgs& args,
                                         const BroadcastLoops& loops, std::vector<Long8>& vectors) {
  std::vector<KernelArg> list;
  vectors.reserve(args.inputs.size() + args.outputs.size() + 1);
  const auto axes_of = [&](const std::vector<std::int64_t>& from) {
    auto& packed = vectors.emplace_back();
    for (std::size_t i = 0; i < from.size(); ++i) packed.values[i] = from[from.size() - 1 - i];
    return KernelArg::by_value(packed.values.data(), sizeof packed.values);
  };
  for (const auto& input : args.inputs)
    if (input) list.emplace_back(input.offset());
  for (const auto& output : args.outputs) list.emplace_back(output.offset());
  if (program.rank > 0) {
    list.push_back(axes_of(loops.sizes));
    for (std::size_t i = 0; i < args.inputs.size(); ++i)
      if (program.inputs[i].access == Access::strided) list.push_back(axes_of(loops.strides[i]));
    for (std::size_t i = 0; i < args.outputs.size(); ++i)
      if (program.outputs[i].access == Access::strided)
        list.push_back(axes_of(loops.strides[args.inputs.size() + i]));
  }
  const auto number = [&](double value) {
    if (program.compute == DType::float32)
      list.emplace_back(static_cast<float>(value));
    else if (program.compute == DType::float64)
      list.emplace_back(value);
    else
      list.emplace_back(static_cast<std::int64_t>(value));
  };
  for (const auto value : args.scalar_inputs) number(value);
  for (const auto value : args.scalars) number(value);
  return list;
}

void enqueue_elements(const Queue& queue, const KernelPtr& kernel, const ElementProgram& program,
                      const ElementArgs& args, const BroadcastLoops& loops,
                      const ElementShape& shape) {
  const auto n = args.outputs[0].numel();
  std::vector<KernelArg> list;
  for (const auto& input : args.inputs)
    if (input) list.emplace_back(TensorAccess::buffer(input));
  for (const auto& output : args.outputs) list.emplace_back(TensorAccess::buffer(output));
  list.emplace_back(static_cast<std::uint64_t>(n));
  if (shape.part > 0) list.emplace_back(static_cast<std::uint64_t>(shape.part));
  std::vector<Long8> vectors;
  const auto values = element_arguments(program, args, loops, vectors);
  list.insert(list.end(), values.begin(), values.end());
  const auto group = static_cast<std::int64_t>(clamped_local(kernel, shape.local));
  const auto items = static_cast<std::int64_t>(ceil_div(n, shape.per_item()));
  enqueue_kernel(queue, *kernel, WorkSize(rounded_up(items, group)), WorkSize(group), list);
}

}  // namespace netcl
