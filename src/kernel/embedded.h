// The OpenCL C sources that CMake embedded at build time, by their path below src/. Knows nothing
// about OpenCL.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netcl {

// The text of a kernel file, e.g. kernel_source("tensor/kernels/copy.cl"). With NETCL_KERNEL_DIR
// set, the file is read from that directory (laid out like src/) at every call, so that a kernel
// can be edited without a rebuild. Throws Error for a path that is not there.
std::string kernel_source(std::string_view path);

// Every embedded path, sorted.
std::vector<std::string_view> embedded_kernel_paths();

namespace detail {

struct EmbeddedKernel {
  std::string_view path;
  std::string_view text;
};

// Defined by the file that cmake/embed_kernels.cmake generates; sorted by path.
std::span<const EmbeddedKernel> embedded_kernels();

}  // namespace detail
}  // namespace netcl
