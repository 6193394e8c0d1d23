// Finds kernel sources: in the generated table, or on disk while developing.
#include "kernel/embedded.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/env.h"
#include "netcl/error.h"

namespace netcl {
namespace {

std::string read_kernel(const std::filesystem::path& file, std::string_view path) {
  std::ifstream in(file, std::ios::binary);
  // A directory opens but cannot be read, hence the check after reading as well.
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad() || std::filesystem::is_directory(file)) {
    throw Error("[kernel_source] no such kernel in NETCL_KERNEL_DIR: '" + std::string(path) +
                "' (" + file.string() + ")");
  }
  return text;
}

}  // namespace

std::string kernel_source(std::string_view path) {
  if (const std::string dir = env::text("NETCL_KERNEL_DIR"); !dir.empty()) {
    return read_kernel(std::filesystem::path(dir) / path, path);
  }
  const auto kernels = detail::embedded_kernels();
  const auto found = std::lower_bound(kernels.begin(), kernels.end(), path,
                                      [](const detail::EmbeddedKernel& kernel,
                                         std::string_view wanted) { return kernel.path < wanted; });
  if (found == kernels.end() || found->path != path) {
    throw Error("[kernel_source] no such embedded kernel: '" + std::string(path) + "' (one of " +
                std::to_string(kernels.size()) + " expected)");
  }
  return std::string(found->text);
}

std::vector<std::string_view> embedded_kernel_paths() {
  std::vector<std::string_view> paths;
  for (const auto& kernel : detail::embedded_kernels()) paths.push_back(kernel.path);
  return paths;
}

}  // namespace netcl
