// Platforms, devices and their properties. A property that a driver does not know is left empty:
// old drivers answer newer queries with CL_INVALID_VALUE, and that is not an error here.
#include <algorithm>
#include <mutex>

#include "base/process.h"
#include "base/signals.h"
#include "cl/cl.h"
#include "cl/opencl_api.h"

namespace netcl::cl {
namespace {

// Vendor queries that the Khronos headers of Debian 12 may lack.
constexpr cl_device_info kNvComputeMajor = 0x4000, kNvComputeMinor = 0x4001, kNvWarpSize = 0x4003;
constexpr cl_device_info kAmdBoardName = 0x4038, kAmdWavefrontWidth = 0x4043,
                         kAmdGfxipMajor = 0x404A, kAmdGfxipMinor = 0x404B;
constexpr cl_device_info kIntelSubGroupSizes = 0x4108, kIntelIpVersion = 0x4250;

class DeviceQuery {
 public:
  explicit DeviceQuery(cl_device_id id) : api_(api("clGetDeviceInfo")), id_(id) {}

  template <class T>
  T value(cl_device_info what) const {
    T result{};
    std::size_t size = 0;
    if (api_.GetDeviceInfo(id_, what, sizeof result, &result, &size) != CL_SUCCESS || size == 0)
      return T{};
    return result;
  }

  std::string text(cl_device_info what) const {
    const auto bytes = list<char>(what);
    return std::string(bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0'));
  }

  template <class T>
  std::vector<T> list(cl_device_info what) const {
    std::size_t size = 0;
    if (api_.GetDeviceInfo(id_, what, 0, nullptr, &size) != CL_SUCCESS) return {};
    std::vector<T> result(size / sizeof(T));
    if (api_.GetDeviceInfo(id_, what, result.size() * sizeof(T), result.data(), nullptr) !=
        CL_SUCCESS)
      return {};
    return result;
  }

 private:
  const Api& api_;
  cl_device_id id_;
};

std::string platform_text(cl_platform_id id, cl_platform_info what) {
  const auto& cl = api("clGetPlatformInfo");
  std::size_t size = 0;
  if (cl.GetPlatformInfo(id, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  if (cl.GetPlatformInfo(id, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

bool lists(const std::string& extensions, const char* name) {
  return extensions.find(name) != std::string::npos;
}

Platform read_platform(const Api& cl, cl_platform_id id) {
  Platform platform;
  platform.id = id;
  platform.name = platform_text(id, CL_PLATFORM_NAME);
  platform.vendor = platform_text(id, CL_PLATFORM_VENDOR);
  platform.version = platform_text(id, CL_PLATFORM_VERSION);
  cl_uint count = 0;
  auto code = cl.GetDeviceIDs(id, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  std::vector<cl_device_id> ids(code == CL_SUCCESS ? count : 0);
  if (!ids.empty()) code = cl.GetDeviceIDs(id, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
  if (code != CL_SUCCESS) {
    platform.problem = error_name(code);
    return platform;
  }
  for (auto* device : ids) platform.devices.emplace_back(device);
  return platform;
}

}  // namespace

std::vector<Platform> platforms() {
  process::require("clGetPlatformIDs");
  if (!loader_problem().empty()) return {};
  const auto& cl = api("clGetPlatformIDs");
  // Loaders initialise themselves in the first call, not always safely from two threads.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const KeepSignalHandlers keep;
  cl_uint count = 0;
  const auto code = cl.GetPlatformIDs(0, nullptr, &count);
  if (code != CL_SUCCESS || count == 0) return {};  // a loader alone survives a fork
  process::mark_driver_used();
  std::vector<cl_platform_id> ids(count);
  check("clGetPlatformIDs", cl.GetPlatformIDs(count, ids.data(), nullptr));
  std::vector<Platform> result;
  result.reserve(ids.size());
  for (auto* id : ids) result.push_back(read_platform(cl, id));
  return result;
}

std::string device_name(const Device& device) {
  return DeviceQuery(device.get()).text(CL_DEVICE_NAME);
}

DeviceQueries query_device(const Device& device) {
  const DeviceQuery ask(device.get());
  DeviceQueries q;
  q.name = ask.text(CL_DEVICE_NAME);
  q.vendor = ask.text(CL_DEVICE_VENDOR);
  q.version = ask.text(CL_DEVICE_VERSION);
  q.driver_version = ask.text(CL_DRIVER_VERSION);
  q.opencl_c_version = ask.text(CL_DEVICE_OPENCL_C_VERSION);
  q.extensions = ask.text(CL_DEVICE_EXTENSIONS);
  auto* platform = ask.value<cl_platform_id>(CL_DEVICE_PLATFORM);
  if (platform != nullptr) {
    q.platform_name = platform_text(platform, CL_PLATFORM_NAME);
    q.platform_version = platform_text(platform, CL_PLATFORM_VERSION);
  }
  q.type_bits = ask.value<cl_device_type>(CL_DEVICE_TYPE);
  q.vendor_id = ask.value<cl_uint>(CL_DEVICE_VENDOR_ID);
  q.compute_units = ask.value<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS);
  q.clock_mhz = ask.value<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY);
  q.address_bits = ask.value<cl_uint>(CL_DEVICE_ADDRESS_BITS);
  q.base_align_bits = ask.value<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN);
  q.max_work_group_size = ask.value<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  q.max_work_item_sizes = ask.list<std::size_t>(CL_DEVICE_MAX_WORK_ITEM_SIZES);
  q.global_mem_size = ask.value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  q.max_mem_alloc_size = ask.value<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  q.local_mem_size = ask.value<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE);
  q.global_cache_size = ask.value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  q.constant_buffer_size = ask.value<cl_ulong>(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
  q.cache_line_size = ask.value<cl_uint>(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
  q.local_mem_is_real = ask.value<cl_device_local_mem_type>(CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  q.host_unified_memory = ask.value<cl_bool>(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  q.has_images = ask.value<cl_bool>(CL_DEVICE_IMAGE_SUPPORT) != 0;
  q.available = ask.value<cl_bool>(CL_DEVICE_AVAILABLE) != 0;
  q.compiler = ask.value<cl_bool>(CL_DEVICE_COMPILER_AVAILABLE) != 0;
  q.preferred_width_float = ask.value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT);
  q.preferred_width_half = ask.value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF);
  q.preferred_width_double = ask.value<cl_uint>(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE);
  q.native_width_float = ask.value<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  q.double_config = ask.value<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG);
  if (lists(q.extensions, "cl_khr_fp16"))
    q.half_config = ask.value<cl_device_fp_config>(CL_DEVICE_HALF_FP_CONFIG);
  q.svm_capabilities = ask.value<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES);
  q.max_sub_groups = ask.value<cl_uint>(CL_DEVICE_MAX_NUM_SUB_GROUPS);
  if (lists(q.extensions, "cl_intel_required_subgroup_size"))
    q.sub_group_sizes = ask.list<std::size_t>(kIntelSubGroupSizes);
  if (lists(q.extensions, "cl_nv_device_attribute_query")) {
    q.nv_compute_major = ask.value<cl_uint>(kNvComputeMajor);
    q.nv_compute_minor = ask.value<cl_uint>(kNvComputeMinor);
    if (const auto warp = ask.value<cl_uint>(kNvWarpSize); warp != 0) q.sub_group_sizes = {warp};
  }
  if (lists(q.extensions, "cl_amd_device_attribute_query")) {
    q.amd_board_name = ask.text(kAmdBoardName);
    q.amd_gfxip_major = ask.value<cl_uint>(kAmdGfxipMajor);
    q.amd_gfxip_minor = ask.value<cl_uint>(kAmdGfxipMinor);
    if (const auto wave = ask.value<cl_uint>(kAmdWavefrontWidth); wave != 0)
      q.sub_group_sizes = {wave};
  }
  if (lists(q.extensions, "cl_intel_device_attribute_query"))
    q.intel_ip_version = ask.value<cl_uint>(kIntelIpVersion);
  return q;
}

}  // namespace netcl::cl
