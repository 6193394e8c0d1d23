// Compiled programs, kept per context in memory and per user on disk. The key is the content:
// source, options, device and driver; never a name.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cl/cl.h"
#include "kernel/local_size_memo.h"
#include "netcl/kernel.h"

namespace netcl {

namespace detail {

// A kernel function of a compiled program on one device.
struct KernelState {
  std::string name;
  const char* interned = nullptr;
  Device device;
  _cl_context* context = nullptr;  // kept alive by the driver's kernel; owning it would be a cycle
  std::vector<KernelParameterInfo> parameters;
  bool parameters_known = false;  // false: the driver told only their number
  cl::KernelLimits limits{};
  std::array<std::size_t, 3> max_items{};  // of the device, per dimension
  std::mutex mutex;                        // setting arguments and enqueueing is one step
  Ref<_cl_program> program;                // for further kernel objects
  Ref<_cl_kernel> kernel;
  std::shared_ptr<const std::string> source;
  std::string options;
  std::string source_hash;    // of source and options
  bool is_wrapped = false;    // its program was built elsewhere, and is not in the cache
  bool was_launched = false;  // with the mutex
  LocalSizeMemo memo;
};

}  // namespace detail

// One program for one device.
struct CompiledProgram {
  Ref<_cl_program> program;
  std::vector<std::shared_ptr<detail::KernelState>> kernels;
  std::string source_hash;

  std::shared_ptr<detail::KernelState> find(std::string_view name) const;  // null when absent
};

// Compiles `source` for `device`, or returns what an earlier call, thread or process compiled.
// Any number of threads may ask: each program is compiled once. Throws BuildError.
std::shared_ptr<const CompiledProgram> compile(const Context& context, const Device& device,
                                               const std::string& source,
                                               const std::vector<std::string>& options);

// A program that was built elsewhere. ArgumentError when it was not built for the device.
std::shared_ptr<const CompiledProgram> adopt_program(const Context& context, const Device& device,
                                                     _cl_program* program);

}  // namespace netcl
