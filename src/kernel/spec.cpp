// KernelSpec: from what the user wrote to the source that is compiled, and the registry of specs.
#include <map>
#include <mutex>

#include "base/check.h"
#include "kernel/program_cache.h"
#include "kernel/program_state.h"
#include "kernel/source_scan.h"
#include "netcl/diagnostics.h"
#include "netcl/kernel.h"

namespace netcl {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, KernelSpec> specs;  // (name, shape_sig)
};

Registry& registry() {
  static auto* instance = new Registry();
  return *instance;
}

void remember(const KernelSpec& spec) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.specs[{spec.name, spec.shape_sig}] = spec;
}

void validate(const KernelSpec& spec) {
  check<ArgumentError>(is_identifier(spec.name),
                       "[KernelSpec] the name must be a C identifier: '{}'", spec.name);
  const bool whole = !spec.src.empty(), parts = !spec.params.empty() || !spec.body.empty();
  check<ArgumentError>(whole != parts, "[KernelSpec {}] give either src, or params and body: {}",
                       spec.name, whole ? "both were given" : "none was given");
}

std::string generated_function(const KernelSpec& spec) {
  std::string text = fmt::format("__kernel void {}({}) {{\n", spec.name, join(spec.params, ", "));
  return text + spec.body + "\n}\n";
}

Program build_for(const KernelSpec& spec, const Context& context, const Device& device) {
  validate(spec);
  auto state = std::make_shared<detail::ProgramState>();
  state->spec = spec;
  state->context = context;
  state->compiled = compile(context, device, spec.to_source(), spec.extra_flags);
  check<ArgumentError>(state->compiled->find(spec.name) != nullptr,
                       "[KernelSpec {}] the source must define a kernel of this name: it has {}",
                       spec.name, join(Program(state).kernel_names(), ", "));
  remember(spec);
  return Program(std::move(state));
}

}  // namespace

std::string KernelSpec::to_source() const {
  validate(*this);
  const auto text = src.empty() ? generated_function(*this) : src;
  std::string result;
  // Only where the extension exists: half pointers for vload_half need no extension at all.
  if (has_half_pointer(text))
    result += "#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#endif\n";
  result += preamble ? *preamble : std::string(PRIMITIVE_PREAMBLE);
  if (!result.empty() && result.back() != '\n') result += '\n';
  // Errors then count lines from the user's first one.
  result += "#line 1\n";
  result += text;
  if (result.back() != '\n') result += '\n';
  return result;
}

Program KernelSpec::build(const Queue& queue) const {
  if (!queue || queue.is_cpu())
    fail<DeviceError>(
        "[KernelSpec {}] a kernel needs an OpenCL device: the queue is of the CPU backend; {}",
        name, device_advice());
  return build_for(*this, queue.context(), queue.device());
}

Program KernelSpec::build(const Context& context) const {
  if (!context)
    fail<DeviceError>("[KernelSpec {}] a kernel needs an OpenCL device: the context is empty; {}",
                      name, device_advice());
  return build_for(*this, context, context.devices().front());
}

std::optional<KernelSpec> find_kernel_spec(std::string_view name, std::string_view shape_sig) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.specs.find({std::string(name), std::string(shape_sig)});
  if (found == all.specs.end()) return std::nullopt;
  return found->second;
}

}  // namespace netcl
