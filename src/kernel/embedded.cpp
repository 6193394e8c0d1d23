// Finds kernel sources: in the generated table, or on disk while developing.
#include "kernel/embedded.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/env.h"
#include "netcl/error.h"

namespace netcl {
namespace {

std::string read_kernel(const std::filesystem::path& file, std::string_view path) {
  std::error_code ignored;
  std::ifstream in;
  // Opening a directory succeeds and reading from it throws, hence the question before.
  if (std::filesystem::is_regular_file(file, ignored)) in.open(file, std::ios::binary);
  if (!in.is_open()) {
    throw Error("[kernel_source] no such kernel in NETCL_KERNEL_DIR: '" + std::string(path) +
                "' (" + file.string() + ")");
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::string kernel_source(std::string_view path) {
  if (const std::string dir = env::text("NETCL_KERNEL_DIR"); !dir.empty()) {
    return read_kernel(std::filesystem::path(dir) / path, path);
  }
  const auto kernels = detail::embedded_kernels();
  const auto found = std::ranges::find(kernels, path, &detail::EmbeddedKernel::path);
  if (found == kernels.end()) {
    throw Error("[kernel_source] no such embedded kernel: '" + std::string(path) + "' (" +
                std::to_string(kernels.size()) + " are embedded)");
  }
  return std::string(found->text);
}

std::vector<std::string_view> embedded_kernel_paths() {
  std::vector<std::string_view> paths;
  for (const auto& kernel : detail::embedded_kernels()) paths.push_back(kernel.path);
  return paths;
}

}  // namespace netcl
