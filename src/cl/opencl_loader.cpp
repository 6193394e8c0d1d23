// Finds the OpenCL loader and its functions once per process.
#include <dlfcn.h>

#include <cstring>

#include "base/check.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/opencl_api.h"

namespace netcl::cl {
namespace {

struct Loaded {
  Api api;
  std::string problem;
  std::string path;
};

Loaded load() {
  Loaded loaded;
  // Never closed: drivers keep threads and exit handlers of their own.
  void* library = nullptr;
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (loaded.problem.empty()) loaded.problem = dlerror();
  }
  if (library == nullptr) return loaded;
  loaded.problem.clear();
  const auto find = [&](auto& slot, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr && loaded.problem.empty())
      loaded.problem = fmt::format("the OpenCL loader has no {} (OpenCL 1.2 is needed)", name);
    std::memcpy(&slot, &symbol, sizeof symbol);
  };
#define NETCL_FIND(name) find(loaded.api.name, "cl" #name);
  NETCL_OPENCL_FUNCTIONS(NETCL_FIND)
#undef NETCL_FIND
  Dl_info info{};
  void* address = nullptr;
  std::memcpy(&address, &loaded.api.GetPlatformIDs, sizeof address);
  if (address != nullptr && dladdr(address, &info) != 0 && info.dli_fname != nullptr)
    loaded.path = info.dli_fname;
  return loaded;
}

const Loaded& loaded() {
  static const auto* instance = new Loaded(load());  // leaked: used by destructors at exit
  return *instance;
}

}  // namespace

bool is_built_in() { return true; }
std::string loader_problem() { return loaded().problem; }
std::string loader_path() { return loaded().path; }

const Api& api(const char* where) {
  process::require(where);
  const auto& instance = loaded();
  netcl::check<DeviceError>(instance.problem.empty(), "[{}] an OpenCL loader is needed: {}", where,
                            instance.problem);
  return instance.api;
}

const Api* api_if_alive() noexcept {
  if (!process::calls_allowed()) return nullptr;
  const auto& instance = loaded();
  return instance.problem.empty() ? &instance.api : nullptr;
}

void check(const char* call, cl_int code) {
  if (code != CL_SUCCESS) [[unlikely]]
    raise(call, code);
}

}  // namespace netcl::cl
