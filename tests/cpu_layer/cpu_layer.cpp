// An OpenCL layer under which every device is a CPU and nothing else. Oclgrind's claims to be of
// all types at once, so that netcl takes it for a GPU, where kernels for CPUs decline. With
// CPU_LAYER_VENDOR and CPU_LAYER_DRIVER_VERSION it also claims to be of another maker or release.
#include <CL/cl_layer.h>

#include <cstdlib>
#include <cstring>

namespace {

cl_icd_dispatch g_driver{};
cl_icd_dispatch g_layer{};

cl_int answer(const void* data, size_t bytes, size_t size, void* value, size_t* size_ret) {
  if (value != nullptr && size < bytes) return CL_INVALID_VALUE;
  if (value != nullptr) std::memcpy(value, data, bytes);
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

cl_int get_device_info(cl_device_id device, cl_device_info what, size_t size, void* value,
                       size_t* size_ret) {
  static constexpr cl_device_type kCpu = CL_DEVICE_TYPE_CPU;
  if (what == CL_DEVICE_TYPE) return answer(&kCpu, sizeof kCpu, size, value, size_ret);
  const char* const claimed = what == CL_DEVICE_VENDOR    ? std::getenv("CPU_LAYER_VENDOR")
                              : what == CL_DRIVER_VERSION ? std::getenv("CPU_LAYER_DRIVER_VERSION")
                                                          : nullptr;
  if (claimed != nullptr) return answer(claimed, std::strlen(claimed) + 1, size, value, size_ret);
  return g_driver.clGetDeviceInfo(device, what, size, value, size_ret);
}

}  // namespace

extern "C" {

cl_int clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  static constexpr char kName[] = "netcl CPU layer";
  static constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  if (what == CL_LAYER_NAME) return answer(kName, sizeof kName, size, value, size_ret);
  if (what == CL_LAYER_API_VERSION)
    return answer(&kVersion, sizeof kVersion, size, value, size_ret);
  return CL_INVALID_VALUE;
}

cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* driver, cl_uint* entries_ret,
                   const cl_icd_dispatch** layer) {
  const auto known = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (entries < known) return CL_INVALID_VALUE;
  g_driver = *driver;
  g_layer = *driver;
  g_layer.clGetDeviceInfo = get_device_info;
  *entries_ret = static_cast<cl_uint>(known);
  *layer = &g_layer;
  return CL_SUCCESS;
}
}
