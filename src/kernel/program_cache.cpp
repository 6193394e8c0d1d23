// Memory: one shared future per key and context, so that a program is compiled once and nobody
// waits for a program that is not his. Disk: BinaryStore, with the parameters of each kernel beside
// the binary, because drivers do not always keep them there.
#include "kernel/program_cache.h"

#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include "cl/state.h"
#include "device/driver_limits.h"
#include "kernel/binary_store.h"
#include "kernel/build_log.h"
#include "kernel/compile_ahead.h"
#include "kernel/driver_options.h"
#include "kernel/launch_listener.h"
#include "netcl/capabilities.h"
#include "netcl/program_cache.h"
#include "profiling/recorder.h"

namespace netcl {
namespace {

using nlohmann::json;
using ProgramPtr = std::shared_ptr<const CompiledProgram>;

constexpr std::string_view kFormat = "netcl-program-1";

struct Counters {
  std::atomic<std::uint64_t> memory_hits{0}, disk_hits{0}, compiled{0}, failed{0};
};
Counters g_counters;

struct ProgramMap {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_future<ProgramPtr>> programs;
};

struct Request {
  const Context& context;
  const Device& device;
  const std::string& source;
  std::string options;
  std::string source_hash;
  std::string key;
};

std::string joined(const std::vector<std::string>& options) {
  // Argument information is what launches are checked against; it costs nothing at run time.
  std::string text = "-cl-kernel-arg-info";
  for (const auto& option : options) text += " " + option;
  return text;
}

Request make_request(const Context& context, const Device& device, const std::string& source,
                     std::string options) {
  Request request{context, device, source, std::move(options), {}, {}};
  Sha256 content;
  content.update_field(source);
  content.update_field(request.options);
  request.source_hash = content.hex();
  const auto& profile = device_profile(device);
  Sha256 key;
  for (const auto field :
       {kFormat, std::string_view(request.source_hash), std::string_view(profile.name),
        std::string_view(profile.driver_version), std::string_view(profile.device_version),
        std::string_view(profile.platform_name), std::string_view(profile.platform_version)})
    key.update_field(field);
  if (const auto added = driver_options(profile); !added.empty()) key.update_field(added);
  request.key = key.hex();
  return request;
}

const char* address_space_name(cl::AddressSpace space) {
  switch (space) {
    case cl::AddressSpace::global:
      return "global";
    case cl::AddressSpace::local:
      return "local";
    case cl::AddressSpace::constant:
      return "constant";
    case cl::AddressSpace::value:
      break;
  }
  return "value";
}

std::vector<KernelParameterInfo> describe(const std::vector<cl::KernelParameter>& parameters) {
  std::vector<KernelParameterInfo> result;
  for (const auto& parameter : parameters)
    result.push_back({parameter.name, parameter.type, address_space_name(parameter.space),
                      parameter.space == cl::AddressSpace::global && !parameter.read_only});
  return result;
}

std::shared_ptr<detail::KernelState> make_kernel(const Request& request, _cl_program* program,
                                                 const std::string& name,
                                                 std::shared_ptr<const std::string> source) {
  auto kernel = std::make_shared<detail::KernelState>();
  kernel->name = name;
  kernel->interned = intern(name);
  kernel->device = request.device;
  kernel->context = request.context.get();
  kernel->program = Ref<_cl_program>::share(program);
  kernel->kernel = cl::create_kernel(program, name);
  kernel->limits = cl::kernel_limits(kernel->kernel.get(), request.device);
  const auto& items = device_profile(request.device).max_work_item_sizes;
  for (std::size_t i = 0; i < 3; ++i) kernel->max_items[i] = i < items.size() ? items[i] : SIZE_MAX;
  kernel->source = std::move(source);
  kernel->source_hash = request.source_hash;
  kernel->options = request.options;
  if (const auto parameters = cl::kernel_parameters(kernel->kernel.get())) {
    kernel->parameters = describe(*parameters);
    kernel->parameters_known = true;
  } else {
    kernel->parameters.resize(cl::kernel_parameter_count(kernel->kernel.get()));
  }
  return kernel;
}

ProgramPtr finish_program(const Request& request, Ref<_cl_program> program) {
  auto result = std::make_shared<CompiledProgram>();
  result->source_hash = request.source_hash;
  const auto source = std::make_shared<const std::string>(request.source);
  for (const auto& name : cl::kernel_names(program.get()))
    result->kernels.push_back(make_kernel(request, program.get(), name, source));
  result->program = std::move(program);
  return result;
}

// ---- the disk side

std::string metadata_of(const CompiledProgram& program) {
  auto kernels = json::object();
  for (const auto& kernel : program.kernels) {
    if (!kernel->parameters_known) continue;
    auto list = json::array();
    for (const auto& p : kernel->parameters)
      list.push_back({p.name, p.type, p.address_space, p.writable});
    kernels[kernel->name] = list;
  }
  return kernels.dump();
}

// Fills in what a driver no longer knows about a program that came from a binary.
void apply_metadata(const CompiledProgram& program, const std::string& metadata) {
  const auto kernels = json::parse(metadata);
  for (const auto& kernel : program.kernels) {
    if (kernel->parameters_known || !kernels.contains(kernel->name)) continue;
    const auto& list = kernels.at(kernel->name);
    if (list.size() != kernel->parameters.size()) continue;
    for (std::size_t i = 0; i < list.size(); ++i)
      kernel->parameters[i] = {list[i].at(0), list[i].at(1), list[i].at(2), list[i].at(3)};
    kernel->parameters_known = true;
  }
}

// Whatever is wrong with an entry, the program is simply compiled again.
ProgramPtr load_from_disk(const Request& request) {
  auto* store = default_binary_store();
  if (store == nullptr) return nullptr;
  const auto stored = store->get(request.key);
  if (!stored) return nullptr;
  try {
    auto program = cl::program_from_binary(request.context.get(), request.device, stored->binary);
    if (!program) return nullptr;
    if (!cl::build(program.get(), request.device, request.options).ok) return nullptr;
    auto result = finish_program(request, std::move(program));
    if (result->kernels.empty()) return nullptr;
    apply_metadata(*result, stored->metadata);
    return result;
  } catch (const DeviceError& error) {
    log::debug(2, "a cached program was refused: {}", error.what());
  } catch (const json::exception& error) {
    log::debug(2, "a cached program has bad metadata: {}", error.what());
  }
  return nullptr;
}

bool keeps_binaries(const ExtendedDeviceProfile& profile) {
  const auto asked = env::text("NETCL_CACHE_BINARIES");
  return asked == "auto" ? !detail::keeps_programs_itself(profile)
                         : env::flag("NETCL_CACHE_BINARIES");
}

void store_on_disk(const Request& request, const CompiledProgram& program) {
  auto* store = default_binary_store();
  if (store == nullptr || !keeps_binaries(device_profile(request.device))) return;
  try {
    StoredProgram entry;
    for (const auto& kernel : program.kernels)
      entry.description += (entry.description.empty() ? "" : " ") + kernel->name;
    entry.description += " for " + device_profile(request.device).name;
    entry.metadata = metadata_of(program);
    entry.binary = cl::program_binary(program.program.get(), request.device);
    if (!entry.binary.empty()) store->put(request.key, entry);
  } catch (const DeviceError& error) {
    log::debug(2, "a program cannot be kept on disk: {}", error.what());
  }
}

ProgramPtr build_from_source(const Request& request) {
  const auto& device = device_profile(request.device).name;
  log::debug(3, "compiling for {} with {}:\n{}", device, request.options, request.source);
  auto program = cl::program_from_source(request.context.get(), request.source);
  const auto options =
      request.options + std::string(driver_options(device_profile(request.device)));
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = cl::build(program.get(), request.device, options);
  if (!outcome.ok) {
    ++g_counters.failed;
    throw make_build_error(cl::error_name(outcome.code), outcome.log, request.source, device,
                           options);
  }
  ++g_counters.compiled;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  compiling::compiled(request.device, took.count());
  auto result = finish_program(request, std::move(program));
  store_on_disk(request, *result);
  return result;
}

ProgramPtr load_or_build(const Request& request) {
  if (auto program = load_from_disk(request)) {
    ++g_counters.disk_hits;
    return program;
  }
  return build_from_source(request);
}

}  // namespace

std::shared_ptr<detail::KernelState> CompiledProgram::find(std::string_view name) const {
  for (const auto& kernel : kernels)
    if (kernel->name == name) return kernel;
  return nullptr;
}

namespace {

// `options` are complete.
ProgramPtr compile_with(const Context& context, const Device& device, const std::string& source,
                        std::string options) {
  check<DeviceError>(static_cast<bool>(context),
                     "[build] a kernel needs an OpenCL device: the CPU "
                     "backend has none");
  profiling::start_from_environment();
  const auto request = make_request(context, device, source, std::move(options));
  const auto map = context.state().attachments.get<ProgramMap>([] { return new ProgramMap(); });
  // One map serves all devices of the context; drivers of equal name may still be two devices.
  const auto slot = request.key + std::to_string(device.int_ptr());
  std::promise<ProgramPtr> promise;
  {
    std::unique_lock lock(map->mutex);
    const auto found = map->programs.find(slot);
    if (found != map->programs.end()) {
      const auto future = found->second;
      lock.unlock();
      ++g_counters.memory_hits;
      return future.get();
    }
    map->programs.emplace(slot, promise.get_future().share());
  }
  try {
    auto program = load_or_build(request);
    promise.set_value(program);
    return program;
  } catch (...) {
    // Whoever waits gets the same error; whoever comes later may try again.
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(map->mutex);
    map->programs.erase(slot);
    throw;
  }
}

}  // namespace

std::shared_ptr<const CompiledProgram> compile(const Context& context, const Device& device,
                                               const std::string& source,
                                               const std::vector<std::string>& options) {
  return compile_with(context, device, source, joined(options));
}

std::shared_ptr<detail::KernelState> shared_kernel(const Context& context,
                                                   const detail::KernelState& kernel) {
  const auto program = kernel.is_wrapped
                           ? adopt_program(context, kernel.device, kernel.program.get())
                           : compile_with(context, kernel.device, *kernel.source, kernel.options);
  return program->find(kernel.name);
}

std::shared_ptr<const CompiledProgram> adopt_program(const Context& context, const Device& device,
                                                     _cl_program* program) {
  const auto options = cl::build_options(program, device);
  check<ArgumentError>(options.has_value(), "[Program] the program must be built for '{}' first",
                       device.name());
  const auto source = cl::program_info(program).source;
  auto content = source;
  if (content.empty())  // made from a binary, which then tells it from others
    for (const auto byte : cl::program_binary(program, device)) content += static_cast<char>(byte);
  const auto known = make_request(context, device, content, *options);
  const Request request{context, device, source, *options, known.source_hash, known.key};
  auto adopted = finish_program(request, Ref<_cl_program>::share(program));
  for (const auto& kernel : adopted->kernels) kernel->is_wrapped = true;
  return adopted;
}

ProgramCacheStats program_cache_stats() {
  return {g_counters.memory_hits, g_counters.disk_hits, g_counters.compiled, g_counters.failed};
}

}  // namespace netcl
