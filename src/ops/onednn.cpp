#include "ops/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include "base/check.h"
#include "base/parallel.h"

namespace netcl::onednn {
namespace {

struct Library {
  void* handle = nullptr;
  int major = 0;
  decltype(&dnnl_sgemm) sgemm = nullptr;

  Library() {
    guard_threads_in_forks();
    // sgemm is the same in both versions; what else is used depends on the headers' one.
    constexpr const char* kNames[] = {"libdnnl.so.2", "libdnnl.so.3"};
    for (const int version : {DNNL_VERSION_MAJOR, DNNL_VERSION_MAJOR == 2 ? 3 : 2}) {
      handle = dlopen(kNames[version - 2], RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) continue;
      major = version;
      sgemm = reinterpret_cast<decltype(sgemm)>(dlsym(handle, "dnnl_sgemm"));
      return;
    }
  }
};

const Library& library() {
  static const auto* const instance = new Library();  // never closed: threads of it may run at exit
  return *instance;
}

}  // namespace

bool is_available() { return library().sgemm != nullptr; }

int major_version() { return library().major; }

void* symbol(const char* name) {
  return library().handle == nullptr ? nullptr : dlsym(library().handle, name);
}

bool sgemm(std::int64_t M, std::int64_t N, std::int64_t K, const Factor& a, const Factor& b,
           float* c, std::int64_t stride_c) {
  if (!is_available()) return false;
  const auto status = library().sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', M, N, K,
                                      1.0f, a.data, a.stride, b.data, b.stride, 0.0f, c, stride_c);
  check(status == dnnl_success, "[matmul] oneDNN's sgemm ended with status {} for {} x {} x {}",
        static_cast<int>(status), M, N, K);
  return true;
}

}  // namespace netcl::onednn
