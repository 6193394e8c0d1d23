// An OpenCL layer that fails the N-th call and counts what is alive. The loader puts it between
// netcl and the driver when OPENCL_LAYERS names it. Releases and retains are counted and never
// failed: no driver refuses them for an object that is alive.
#include "fault_layer/fault_layer.h"

#include <CL/cl_layer.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>

#include "cl/opencl_api.h"

namespace {

cl_icd_dispatch g_driver{};
cl_icd_dispatch g_layer{};

// ---- what fails

std::mutex g_mutex;
long g_calls = 0;
long g_left = 0;  // calls until the fault; 0: not armed
int g_code = 0;
int g_turn = 0;
bool g_sticky = false;
const char* g_failed = nullptr;

constexpr int kMemory[] = {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
                           CL_OUT_OF_HOST_MEMORY};
constexpr int kBuild[] = {CL_BUILD_PROGRAM_FAILURE, CL_COMPILER_NOT_AVAILABLE,
                          CL_OUT_OF_HOST_MEMORY, -9999};
constexpr int kBinary[] = {CL_INVALID_BINARY, CL_OUT_OF_HOST_MEMORY};
constexpr int kWait[] = {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_OUT_OF_RESOURCES,
                         CL_INVALID_COMMAND_QUEUE};
constexpr int kDiscovery[] = {CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE};
constexpr int kGeneral[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY};

bool begins(const char* name, const char* with) {
  return std::strncmp(name, with, std::strlen(with)) == 0;
}

std::span<const int> plausible(const char* name) {
  if (begins(name, "CreateProgramWithBinary")) return kBinary;
  if (begins(name, "BuildProgram")) return kBuild;
  if (begins(name, "CreateBuffer") || begins(name, "CreateSubBuffer") || begins(name, "Enqueue"))
    return kMemory;
  if (begins(name, "Wait") || begins(name, "Finish") || begins(name, "Flush")) return kWait;
  if (begins(name, "GetPlatform") || begins(name, "GetDevice") || begins(name, "CreateContext"))
    return kDiscovery;
  return kGeneral;
}

// 0, or the code with which this call has to fail.
int due(const char* name) {
  const std::lock_guard lock(g_mutex);
  ++g_calls;
  if (g_left == 0 || (g_left > 1 && --g_left >= 1)) return 0;
  // g_left is 1: this is the call
  if (g_failed == nullptr) g_failed = name;
  if (!g_sticky) g_left = 0;
  if (g_code != 0) return g_code;
  const auto codes = plausible(name);
  return codes[static_cast<std::size_t>(g_turn) % codes.size()];
}

// ---- what is alive

enum Kind { kNothing, kContext, kQueue, kBuffer, kProgram, kKernel, kEvent, kKinds };
std::atomic<long> g_alive[kKinds];

constexpr Kind kind_in(const char* name) {
  const auto has = [name](const char* part) constexpr {
    for (const char* at = name; *at != 0; ++at) {
      const char *a = at, *b = part;
      while (*b != 0 && *a == *b) ++a, ++b;
      if (*b == 0) return true;
    }
    return false;
  };
  if (has("Context")) return kContext;
  if (has("CommandQueue")) return kQueue;
  if (has("Buffer") || has("MemObject")) return kBuffer;
  if (has("Program")) return kProgram;
  if (has("Kernel")) return kKernel;
  if (has("Event")) return kEvent;
  return kNothing;
}

// ---- the functions between

struct Names {
#define NAME(name) static constexpr char name[] = #name;
  NETCL_OPENCL_FUNCTIONS(NAME)
#undef NAME
};

void count_event(cl_event* event) {
  if (event != nullptr) ++g_alive[kEvent];
}
template <class Other>
void count_event(Other) {}

void set_code(cl_int* target, cl_int code) {
  if (target != nullptr) *target = code;
}
template <class Other>
void set_code(Other, cl_int) {}

template <auto Member, const char* Name, class Function>
struct Between;

template <auto Member, const char* Name, class Result, class... Args>
struct Between<Member, Name, Result (*)(Args...)> {
  static Result call(Args... args) {
    constexpr bool create = Name[0] == 'C';
    constexpr bool retain = Name[0] == 'R' && Name[2] == 't';
    constexpr bool release = Name[0] == 'R' && Name[2] == 'l';
    if constexpr (!retain && !release) {
      if (const int code = due(Name)) {
        if constexpr (std::is_same_v<Result, cl_int>)
          return code;
        else {
          (set_code(args, code), ...);
          return nullptr;
        }
      }
    }
    const Result result = (g_driver.*Member)(args...);
    bool worked = true;
    if constexpr (std::is_same_v<Result, cl_int>)
      worked = result == CL_SUCCESS;
    else
      worked = result != nullptr;
    if (worked) {
      if constexpr (create || retain) ++g_alive[kind_in(Name)];
      if constexpr (release) --g_alive[kind_in(Name)];
      (count_event(args), ...);
    }
    return result;
  }
};

}  // namespace

extern "C" {

void fault_layer_arm(long nth, int code, int turn, int sticky) {
  const std::lock_guard lock(g_mutex);
  g_left = nth;
  g_code = code;
  g_turn = turn;
  g_sticky = sticky != 0;
  g_failed = nullptr;
}

const char* fault_layer_failed() {
  const std::lock_guard lock(g_mutex);
  return g_failed;
}

FaultLayerCounts fault_layer_counts() {
  const std::lock_guard lock(g_mutex);
  return {g_calls,           g_alive[kContext], g_alive[kQueue], g_alive[kBuffer],
          g_alive[kProgram], g_alive[kKernel],  g_alive[kEvent]};
}

cl_int clGetLayerInfo(cl_layer_info name, size_t size, void* value, size_t* size_ret) {
  static constexpr char kName[] = "netcl fault layer";
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const void* source = name == CL_LAYER_NAME ? static_cast<const void*>(kName) : &version;
  const size_t needed = name == CL_LAYER_NAME ? sizeof kName : sizeof version;
  if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value != nullptr && size < needed) return CL_INVALID_VALUE;
  if (value != nullptr) std::memcpy(value, source, needed);
  if (size_ret != nullptr) *size_ret = needed;
  return CL_SUCCESS;
}

cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* driver, cl_uint* entries_ret,
                   const cl_icd_dispatch** layer) {
  const auto known = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (entries < known) return CL_INVALID_VALUE;
  g_driver = *driver;
  g_layer = *driver;
#define HOOK(name)   \
  g_layer.cl##name = \
      Between<&cl_icd_dispatch::cl##name, Names::name, decltype(cl_icd_dispatch::cl##name)>::call;
  NETCL_OPENCL_FUNCTIONS(HOOK)
#undef HOOK
  *entries_ret = static_cast<cl_uint>(known);
  *layer = &g_layer;
  return CL_SUCCESS;
}
}
