// The library's own kernels: .cl files with defines, compiled for a queue's device when first used.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/program_cache.h"

namespace netcl {

// The text of a .cl file with its `#include "path/below/src.cl"` lines replaced by those files,
// each once. OpenCL compilers have no include path to the library's files.
std::string assemble_source(std::string_view path);

// A kernel of a .cl file. `defines` are "NAME=VALUE" or "NAME". Remembered per context and device.
std::shared_ptr<detail::KernelState> builtin_kernel(const Queue& queue, std::string_view path,
                                                    std::string_view kernel,
                                                    const std::vector<std::string>& defines);

}  // namespace netcl
