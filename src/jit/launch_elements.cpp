#include "jit/group_program.h"
#include "jit/kernel_memo.h"
#include "jit/launch_shape.h"

namespace netcl::fusion {

int vector_width(const Queue& queue, const GroupProgram& program) {
  if (!device_profile(queue).is_cpu) return 4;
  // Sixteen doubles are more than the registers hold, and take long to compile.
  return program.compute == DType::float64 ? 8 : 16;
}

LaunchShape launch_shape(const Queue& queue, const GroupProgram& program,
                         const ElementProgram& described) {
  const auto& profile = device_profile(queue);
  LaunchShape shape;
  shape.local = profile.is_cpu ? 256 : profile.optimal_wg_size_1d;
  // On a CPU a work-group is a loop, and starting one costs more than many elements.
  shape.items = profile.is_cpu ? 4 : 1;
  if (described.rank == 0 && program.vectors) shape.vec = vector_width(queue, program);
  return shape;
}

void append_shape(std::string& key, const ElementProgram& described, const LaunchShape& shape) {
  for (const auto part :
       {static_cast<int>(described.rank), described.wide ? 1 : 0, shape.vec, shape.items})
    key.append(reinterpret_cast<const char*>(&part), sizeof part);
}

std::string result_text(const Value& value, DType dtype) {
  const auto name = name_of_value(value);
  return dtype == DType::boolean ? name + " != K(0)" : name;
}

std::vector<Tensor> launch_elements(const Queue& queue, const GroupProgram& program) {
  auto args = program.arguments();
  args.outputs = allocate_results(queue, program);
  const auto loops = program.loops();
  ElementProgram described;
  described.compute = program.compute;
  describe_operands(args, loops, described);
  const auto shape = launch_shape(queue, program, described);
  auto key = program.key();
  append_shape(key, described, shape);
  const auto kernels = memo_kernels(queue, program, key, {"elementwise"},
                                    [&] { return elements_source(program, described, shape); });
  const auto per_item = static_cast<std::size_t>(shape.vec > 1 ? shape.vec : shape.items);
  enqueue_elements(queue, kernels[0], described, args, loops, per_item, shape.local);
  return std::move(args.outputs);
}

std::string elements_source(const GroupProgram& program, ElementProgram described,
                            const LaunchShape& shape) {
  write_statements(program, described);
  for (const auto& result : program.results)
    described.results.push_back(result_text(result.value, result.dtype));
  return render_elements(described, shape.vec, shape.items);
}

ElementProgram described_without_device(const GroupProgram& program) {
  ElementProgram described;
  described.compute = program.compute;
  const auto loops = program.loops();
  bool strided = false;
  for (std::size_t i = 0; i < program.operands.size(); ++i) {
    const auto access = element_access(loops, i, true);
    strided |= access == ElementOperand::Access::strided;
    described.inputs.push_back({program.operands[i].tensor.dtype(), access});
  }
  for (const auto& result : program.results)
    described.outputs.push_back({result.dtype, ElementOperand::Access::linear});
  described.rank = strided ? std::max<std::size_t>(loops.sizes.size(), 1) : 0;
  return described;
}

std::string elements_source(const GroupProgram& program) {
  const auto described = described_without_device(program);
  return elements_source(program, described,
                         {.vec = described.rank > 0 || !program.vectors ? 1 : 4});
}

}  // namespace netcl::fusion
