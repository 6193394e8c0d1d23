#include "jit/group_program.h"
#include "jit/kernel_memo.h"
#include "jit/launch_shape.h"

namespace netcl::fusion {

int vector_width(const ExtendedDeviceProfile& profile, DType compute, const ElementArgs& args) {
  if (!profile.is_cpu) return 4;
  // Sixteen doubles are more than the registers hold, and take long to compile.
  return element_lanes(args, compute, compute == DType::float64 ? 8 : 16, profile);
}

ElementShape launch_shape(const Queue& queue, const GroupProgram& program,
                          const ElementProgram& described, const ElementArgs& args,
                          const BroadcastLoops& loops) {
  const auto& profile = device_profile(queue);
  const bool vectors = program.vectors && takes_vectors(described, loops, profile);
  const auto vec = vectors ? vector_width(profile, program.compute, args) : 1;
  if (profile.is_cpu && vectors) return walking_shape(args, program.compute, vec, profile);
  // On a CPU a work-group is a loop, and starting one costs more than many elements.
  return {.vec = vec,
          .items = profile.is_cpu ? 4 : 1,
          .local = profile.is_cpu ? 256 : profile.optimal_wg_size_1d};
}

void append_shape(std::string& key, const ElementProgram& described, const ElementShape& shape) {
  const auto append = [&](std::int64_t part) {
    key.append(reinterpret_cast<const char*>(&part), sizeof part);
  };
  append(static_cast<std::int64_t>(described.rank));
  append(described.wide ? 1 : 0);
  append(shape.bits());
  for (const auto* list : {&described.inputs, &described.outputs})
    for (const auto& operand : *list) append(operand_bits(operand));
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
  described.own_functions = device_profile(queue).is_cpu;
  const auto shape = launch_shape(queue, program, described, args, loops);
  auto key = program.key();
  append_shape(key, described, shape);
  const auto kernels = memo_kernels(queue, program, key, {"elementwise"},
                                    [&] { return elements_source(program, described, shape); });
  enqueue_elements(queue, kernels[0], described, args, loops, shape);
  return std::move(args.outputs);
}

std::string elements_source(const GroupProgram& program, ElementProgram described,
                            const ElementShape& shape) {
  write_statements(program, described);
  for (const auto& result : program.results)
    described.results.push_back(result_text(result.value, result.dtype));
  return render_elements(described, shape);
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
