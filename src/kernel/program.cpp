// Program and Kernel: looking at what was built. Launching a Kernel lives in src/tune, because a
// launch without a local size may have to measure first.
#include "base/check.h"
#include "base/process.h"
#include "kernel/program_state.h"

namespace netcl {
namespace {

const detail::ProgramState& required(const std::shared_ptr<detail::ProgramState>& state) {
  check<ArgumentError>(state != nullptr, "[Program] the program must be built first");
  return *state;
}

const detail::KernelState& required(const std::shared_ptr<detail::KernelState>& state) {
  check<ArgumentError>(state != nullptr, "[Kernel] the kernel must be built first");
  return *state;
}

// The device meant by a caller who may not have named one.
Device device_of(const cl::ProgramInfo& info, const Device& wanted) {
  if (wanted) return wanted;
  check<ArgumentError>(!info.devices.empty(), "[Program] the program must have a device: none");
  return info.devices.front();
}

}  // namespace

Program Program::wrap(_cl_program* program, const Device& device) {
  process::require("Program");
  check<ArgumentError>(program != nullptr, "[Program] the OpenCL program must not be null");
  const auto info = cl::program_info(program);
  auto state = std::make_shared<detail::ProgramState>();
  state->context = Context::wrap(info.context);
  state->compiled = adopt_program(state->context, device_of(info, device), program);
  state->spec = KernelSpec{.name = "", .src = info.source, .preamble = "", .tune = false};
  const auto& kernels = state->compiled->kernels;
  if (kernels.size() == 1) state->spec.name = kernels.front()->name;
  return Program(std::move(state));
}

Kernel Kernel::wrap(_cl_kernel* kernel, const Device& device) {
  process::require("Kernel");
  check<ArgumentError>(kernel != nullptr, "[Kernel] the OpenCL kernel must not be null");
  return Program::wrap(cl::kernel_program(kernel), device).kernel(cl::kernel_name(kernel));
}

const KernelSpec& Program::spec() const { return required(state_).spec; }

std::vector<std::string> Program::kernel_names() const {
  std::vector<std::string> names;
  for (const auto& kernel : required(state_).compiled->kernels) names.push_back(kernel->name);
  return names;
}

bool Program::has_kernel(std::string_view name) const {
  return required(state_).compiled->find(name) != nullptr;
}

Kernel Program::kernel(std::string_view name) const {
  auto found = required(state_).compiled->find(name);
  if (found == nullptr)  // not check(): the list of names would be built at every run
    fail<ArgumentError>("[Program] the program must have the kernel '{}': it has {}", name,
                        join(kernel_names(), ", "));
  const auto& spec = state_->spec;
  return Kernel(std::move(found),
                {spec.workgroup_size, spec.max_workgroup_size, spec.guards_range, spec.tune});
}

Kernel Program::kernel() const { return kernel(spec().name); }

std::uintptr_t Program::int_ptr() const {
  return reinterpret_cast<std::uintptr_t>(required(state_).compiled->program.get());
}

const std::string& Kernel::name() const { return required(state_).name; }
const std::vector<KernelParameterInfo>& Kernel::parameters() const {
  return required(state_).parameters;
}
std::size_t Kernel::max_work_group_size() const { return required(state_).limits.work_group_size; }
WorkSize Kernel::tuned_size() const {
  required(state_);
  return state_->memo.tuned();
}
std::string Kernel::to_source() const { return *required(state_).source; }
std::uintptr_t Kernel::int_ptr() const {
  return reinterpret_cast<std::uintptr_t>(required(state_).kernel.get());
}

}  // namespace netcl
