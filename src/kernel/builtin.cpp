// Source assembly and a memo in front of the program cache, so that a launch hashes no source text.
#include "kernel/builtin.h"

#include <mutex>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/env.h"
#include "cl/state.h"
#include "kernel/embedded.h"

namespace netcl {
namespace {

struct BuiltinMemo {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<detail::KernelState>> kernels;
};

// The path of an `#include "path"` line, or empty.
std::string_view included_path(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return {};
  line.remove_prefix(kInclude.size());
  return line.substr(0, line.find('"'));
}

void append(std::string& text, std::string_view path, std::set<std::string, std::less<>>& seen) {
  if (!seen.emplace(path).second) return;
  const auto source = kernel_source(path);
  for (std::size_t begin = 0; begin < source.size();) {
    const auto end = std::min(source.find('\n', begin), source.size());
    const auto line = std::string_view(source).substr(begin, end - begin);
    if (const auto inner = included_path(line); !inner.empty())
      append(text, inner, seen);
    else
      text.append(line).push_back('\n');
    begin = end + 1;
  }
}

std::string memo_key(const Queue& queue, std::string_view path, std::string_view kernel,
                     const std::vector<std::string>& defines) {
  std::string key = std::to_string(queue.device().int_ptr());
  key.append("|").append(path).append("|").append(kernel);
  for (const auto& define : defines) key.append("|").append(define);
  return key;
}

std::shared_ptr<detail::KernelState> compile_builtin(const Queue& queue, std::string_view path,
                                                     std::string_view kernel,
                                                     const std::vector<std::string>& defines) {
  std::vector<std::string> options = {"-cl-std=CL1.2"};
  for (const auto& define : defines) options.push_back("-D" + define);
  auto program = compile(queue.context(), queue.device(), assemble_source(path), options);
  auto state = program->find(kernel);
  check(state != nullptr, "[kernel] {} must define the kernel {}", path, kernel);
  return state;
}

}  // namespace

std::string assemble_source(std::string_view path) {
  std::string text;
  std::set<std::string, std::less<>> seen;
  append(text, path, seen);
  return text;
}

std::shared_ptr<detail::KernelState> builtin_kernel(const Queue& queue, std::string_view path,
                                                    std::string_view kernel,
                                                    const std::vector<std::string>& defines) {
  check<DeviceError>(!queue.is_cpu(), "[{}] a kernel needs an OpenCL device", kernel);
  const auto memo =
      queue.context().state().attachments.get<BuiltinMemo>([] { return new BuiltinMemo(); });
  const auto key = memo_key(queue, path, kernel, defines);
  {
    const std::lock_guard lock(memo->mutex);
    const auto found = memo->kernels.find(key);
    if (found != memo->kernels.end()) return found->second;
  }
  auto state = compile_builtin(queue, path, kernel, defines);
  if (!env::text("NETCL_KERNEL_DIR").empty()) return state;  // edited files must be seen
  const std::lock_guard lock(memo->mutex);
  return memo->kernels.emplace(key, std::move(state)).first->second;
}

}  // namespace netcl
