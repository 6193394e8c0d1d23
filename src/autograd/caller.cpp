// The C++ call stack by names of functions, without what lies inside netcl. Functions have names
// when the program exports them (-rdynamic); else the file and the offset, for addr2line.
#include "autograd/caller.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/check.h"
#include "netcl/autograd.h"

namespace netcl {
namespace {

thread_local std::function<std::string()> t_describe;
constexpr int kFrames = 64;
constexpr std::size_t kShown = 4;    // callers in a message
constexpr std::size_t kInside = 16;  // frames that may be netcl's own

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

std::string function_of(const Dl_info& info, void* address) {
  if (info.dli_sname != nullptr) return demangled(info.dli_sname);
  const auto offset = static_cast<char*>(address) - static_cast<char*>(info.dli_fbase);
  return fmt::format("{}+{:#x}", info.dli_fname, offset);
}

bool is_inside(const std::string& function) {
  return function.starts_with("netcl::") || function.find(" netcl::") != function.npos;
}

std::string call_stack() {
  void* frames[kFrames];
  const int count = ::backtrace(frames, kFrames);
  std::vector<std::string> functions;
  std::size_t first = 0;  // behind the last one that is known to be netcl's
  for (int i = 1; i < count; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    functions.push_back(function_of(info, frames[i]));
    if (is_inside(functions.back()) && functions.size() <= kInside) first = functions.size();
  }
  functions.erase(functions.begin(), functions.begin() + static_cast<std::ptrdiff_t>(first));
  const std::size_t shown = first > 0 ? kShown : kInside;
  if (functions.size() > shown) functions.resize(shown);
  return join(functions, " <- ");
}

}  // namespace

void set_caller_description(std::function<std::string()> describe) {
  t_describe = std::move(describe);
}

std::string detail::describe_caller() { return t_describe ? t_describe() : call_stack(); }

}  // namespace netcl
