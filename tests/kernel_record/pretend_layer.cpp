// An OpenCL layer that claims to be a recorded device (PRETEND_DEVICE), keeps the source of every
// program that is built (in PRETEND_PROGRAMS) and every launch, and compiles and runs nothing.
// Memory and events are those of the driver below. So netcl shows what it would do on hardware that
// the machine does not have.
#include "kernel_record/pretend_layer.h"

#include <CL/cl_layer.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "cl/opencl_api.h"
#include "kernel_record/program_text.h"
#include "support/recorded_devices.h"

namespace {

using netcl::record::KernelText, netcl::record::ProgramText;

cl_icd_dispatch g_driver{};
cl_icd_dispatch g_layer{};

const netcl::DeviceQueries& pretended() {
  static const auto& queries = []() -> const netcl::DeviceQueries& {
    const char* label = std::getenv("PRETEND_DEVICE");
    return netcl::test::recorded(label == nullptr ? "" : label).queries;
  }();
  return queries;
}

// ---- answers

template <class T>
cl_int answer(const T* data, size_t bytes, size_t size, void* value, size_t* size_ret) {
  if (value != nullptr && size < bytes) return CL_INVALID_VALUE;
  if (value != nullptr) std::memcpy(value, data, bytes);
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

struct Answer {
  size_t size;
  void* value;
  size_t* size_ret;

  cl_int text(const std::string& text) const {
    return answer(text.c_str(), text.size() + 1, size, value, size_ret);
  }
  template <class T>
  cl_int list(const std::vector<T>& list) const {
    return answer(list.data(), list.size() * sizeof(T), size, value, size_ret);
  }
  template <class T>
  cl_int number(T number) const {
    return answer(&number, sizeof number, size, value, size_ret);
  }
};

cl_int get_platform_info(cl_platform_id platform, cl_platform_info what, size_t size, void* value,
                         size_t* size_ret) {
  const Answer reply{size, value, size_ret};
  if (what == CL_PLATFORM_NAME) return reply.text(pretended().platform_name);
  if (what == CL_PLATFORM_VENDOR) return reply.text(pretended().vendor);
  if (what == CL_PLATFORM_VERSION) return reply.text(pretended().platform_version);
  return g_driver.clGetPlatformInfo(platform, what, size, value, size_ret);
}

cl_int get_device_info(cl_device_id device, cl_device_info what, size_t size, void* value,
                       size_t* size_ret) {
  const auto& q = pretended();
  const Answer reply{size, value, size_ret};
  switch (what) {
    case CL_DEVICE_NAME:
      return reply.text(q.name);
    case CL_DEVICE_VENDOR:
      return reply.text(q.vendor);
    case CL_DEVICE_VERSION:
      return reply.text(q.version);
    case CL_DRIVER_VERSION:
      return reply.text(q.driver_version);
    case CL_DEVICE_OPENCL_C_VERSION:
      return reply.text(q.opencl_c_version);
    case CL_DEVICE_EXTENSIONS:
      return reply.text(q.extensions);
    case CL_DEVICE_TYPE:
      return reply.number<cl_device_type>(q.type_bits);
    case CL_DEVICE_VENDOR_ID:
      return reply.number<cl_uint>(q.vendor_id);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return reply.number<cl_uint>(q.compute_units);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
      return reply.number<cl_uint>(q.clock_mhz);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
      return reply.number<cl_uint>(q.base_align_bits);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return reply.number(q.max_work_group_size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
      return reply.list(q.max_work_item_sizes);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      return reply.number<cl_ulong>(q.global_mem_size);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return reply.number<cl_ulong>(q.max_mem_alloc_size);
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return reply.number<cl_ulong>(q.local_mem_size);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
      return reply.number<cl_ulong>(q.global_cache_size);
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
      return reply.number<cl_ulong>(q.constant_buffer_size);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE:
      return reply.number<cl_uint>(q.cache_line_size);
    case CL_DEVICE_LOCAL_MEM_TYPE:
      return reply.number<cl_device_local_mem_type>(q.local_mem_is_real ? CL_LOCAL : CL_GLOBAL);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return reply.number<cl_bool>(q.host_unified_memory ? CL_TRUE : CL_FALSE);
    case CL_DEVICE_IMAGE_SUPPORT:
      return reply.number<cl_bool>(q.has_images ? CL_TRUE : CL_FALSE);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
      return reply.number<cl_uint>(q.preferred_width_float);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
      return reply.number<cl_uint>(q.preferred_width_half);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
      return reply.number<cl_uint>(q.preferred_width_double);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
      return reply.number<cl_uint>(q.native_width_float);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      return reply.number<cl_device_fp_config>(q.double_config);
    case CL_DEVICE_HALF_FP_CONFIG:
      return reply.number<cl_device_fp_config>(q.half_config);
    case CL_DEVICE_SVM_CAPABILITIES:
      return reply.number<cl_device_svm_capabilities>(q.svm_capabilities);
    case CL_DEVICE_MAX_NUM_SUB_GROUPS:
      return reply.number<cl_uint>(q.max_sub_groups);
    case 0x4000:  // cl_nv_device_attribute_query: major, minor, warp
      return reply.number<cl_uint>(q.nv_compute_major);
    case 0x4001:
      return reply.number<cl_uint>(q.nv_compute_minor);
    case 0x4003:
    case 0x4043:  // cl_amd_device_attribute_query: wavefront, board, gfxip
      return reply.number<cl_uint>(
          q.sub_group_sizes.empty() ? 0 : static_cast<cl_uint>(q.sub_group_sizes[0]));
    case 0x4038:
      return reply.text(q.amd_board_name);
    case 0x404A:
      return reply.number<cl_uint>(q.amd_gfxip_major);
    case 0x404B:
      return reply.number<cl_uint>(q.amd_gfxip_minor);
    case 0x4108:  // cl_intel_required_subgroup_size
      return reply.list(q.sub_group_sizes);
    case 0x4250:  // cl_intel_device_attribute_query
      return reply.number<cl_uint>(q.intel_ip_version);
    default:
      return g_driver.clGetDeviceInfo(device, what, size, value, size_ret);
  }
}

// ---- programs and kernels of the layer's own

struct Program {
  std::atomic<int> users{1};
  ProgramText text;
};

struct Kernel {
  std::atomic<int> users{1};
  Program* program;
  const KernelText* text;
  std::vector<size_t> local_bytes;  // per argument
};

Program* own(cl_program program) { return reinterpret_cast<Program*>(program); }
Kernel* own(cl_kernel kernel) { return reinterpret_cast<Kernel*>(kernel); }

std::mutex g_mutex;
std::string g_tag;
std::set<std::string> g_launches;

cl_program create_program(cl_context, cl_uint count, const char** texts, const size_t* lengths,
                          cl_int* code) {
  auto* program = new Program();
  for (cl_uint i = 0; i < count; ++i)
    program->text.source += lengths == nullptr || lengths[i] == 0
                                ? std::string(texts[i])
                                : std::string(texts[i], lengths[i]);
  if (code != nullptr) *code = CL_SUCCESS;
  return reinterpret_cast<cl_program>(program);
}

cl_program create_from_binary(cl_context, cl_uint, const cl_device_id*, const size_t*,
                              const unsigned char**, cl_int*, cl_int* code) {
  if (code != nullptr) *code = CL_INVALID_BINARY;
  return nullptr;
}

cl_int build_program(cl_program program, cl_uint, const cl_device_id*, const char* options,
                     void(CL_CALLBACK*)(cl_program, void*), void*) {
  const char* folder = std::getenv("PRETEND_PROGRAMS");
  own(program)->text.options = options == nullptr ? "" : options;
  return folder != nullptr && own(program)->text.keep(folder) ? CL_SUCCESS
                                                              : CL_BUILD_PROGRAM_FAILURE;
}

cl_int get_build_info(cl_program, cl_device_id, cl_program_build_info, size_t size, void* value,
                      size_t* size_ret) {
  return Answer{size, value, size_ret}.text("");
}

cl_int get_program_info(cl_program program, cl_program_info what, size_t size, void* value,
                        size_t* size_ret) {
  if (what != CL_PROGRAM_KERNEL_NAMES) return CL_INVALID_VALUE;  // there is no binary
  std::string names;
  for (const auto& kernel : own(program)->text.kernels)
    names += (names.empty() ? "" : ";") + kernel.name;
  return Answer{size, value, size_ret}.text(names);
}

cl_int retain_program(cl_program program) {
  ++own(program)->users;
  return CL_SUCCESS;
}

cl_int release_program(cl_program program) {
  if (--own(program)->users == 0) delete own(program);
  return CL_SUCCESS;
}

cl_kernel create_kernel(cl_program program, const char* name, cl_int* code) {
  for (const auto& text : own(program)->text.kernels) {
    if (text.name != name) continue;
    retain_program(program);
    if (code != nullptr) *code = CL_SUCCESS;
    return reinterpret_cast<cl_kernel>(
        new Kernel{1, own(program), &text, std::vector<size_t>(text.parameters)});
  }
  if (code != nullptr) *code = CL_INVALID_KERNEL_NAME;
  return nullptr;
}

cl_int retain_kernel(cl_kernel kernel) {
  ++own(kernel)->users;
  return CL_SUCCESS;
}

cl_int release_kernel(cl_kernel kernel) {
  if (--own(kernel)->users > 0) return CL_SUCCESS;
  release_program(reinterpret_cast<cl_program>(own(kernel)->program));
  delete own(kernel);
  return CL_SUCCESS;
}

cl_int get_kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void* value,
                       size_t* size_ret) {
  if (what != CL_KERNEL_NUM_ARGS) return CL_INVALID_VALUE;
  return Answer{size, value, size_ret}.number(static_cast<cl_uint>(own(kernel)->text->parameters));
}

cl_int get_argument_info(cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void*, size_t*) {
  return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
}

cl_int get_work_group_info(cl_kernel kernel, cl_device_id, cl_kernel_work_group_info what,
                           size_t size, void* value, size_t* size_ret) {
  const Answer reply{size, value, size_ret};
  switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return reply.number(pretended().max_work_group_size);
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return reply.number(pretended().sub_group_sizes.empty() ? size_t{32}
                                                              : pretended().sub_group_sizes[0]);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
      return reply.number(own(kernel)->text->required);
    default:
      return reply.number<cl_ulong>(0);
  }
}

cl_int set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  if (index >= own(kernel)->local_bytes.size()) return CL_INVALID_ARG_INDEX;
  own(kernel)->local_bytes[index] = value == nullptr ? size : 0;
  return CL_SUCCESS;
}

cl_int enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t*,
               const size_t*, const size_t* local, cl_uint waits, const cl_event* wait_list,
               cl_event* event) {
  size_t items = local == nullptr ? 0 : 1, bytes = 0;
  for (cl_uint i = 0; local != nullptr && i < dimensions; ++i) items *= local[i];
  for (const auto each : own(kernel)->local_bytes) bytes += each;
  {
    const std::lock_guard lock(g_mutex);
    g_launches.insert(g_tag + '\t' + own(kernel)->program->text.hash + '\t' +
                      own(kernel)->text->name + '\t' + std::to_string(items) + '\t' +
                      std::to_string(bytes));
  }
  return g_driver.clEnqueueMarkerWithWaitList(queue, waits, wait_list, event);
}

}  // namespace

extern "C" {

void pretend_layer_tag(const char* tag) {
  const std::lock_guard lock(g_mutex);
  g_tag = tag;
}

int pretend_layer_write(const char* path) {
  const std::lock_guard lock(g_mutex);
  std::string text;
  for (const auto& launch : g_launches) text += launch + '\n';
  return netcl::record::write_file(path, text) ? 1 : 0;
}

cl_int clGetLayerInfo(cl_layer_info name, size_t size, void* value, size_t* size_ret) {
  const Answer reply{size, value, size_ret};
  if (name == CL_LAYER_NAME) return reply.text("netcl pretend layer");
  if (name == CL_LAYER_API_VERSION)
    return reply.number<cl_layer_api_version>(CL_LAYER_API_VERSION_100);
  return CL_INVALID_VALUE;
}

cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* driver, cl_uint* entries_ret,
                   const cl_icd_dispatch** layer) {
  const auto known = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (entries < known) return CL_INVALID_VALUE;
  g_driver = *driver;
  g_layer = *driver;
  g_layer.clGetPlatformInfo = get_platform_info;
  g_layer.clGetDeviceInfo = get_device_info;
  g_layer.clCreateProgramWithSource = create_program;
  g_layer.clCreateProgramWithBinary = create_from_binary;
  g_layer.clBuildProgram = build_program;
  g_layer.clGetProgramBuildInfo = get_build_info;
  g_layer.clGetProgramInfo = get_program_info;
  g_layer.clRetainProgram = retain_program;
  g_layer.clReleaseProgram = release_program;
  g_layer.clCreateKernel = create_kernel;
  g_layer.clRetainKernel = retain_kernel;
  g_layer.clReleaseKernel = release_kernel;
  g_layer.clGetKernelInfo = get_kernel_info;
  g_layer.clGetKernelArgInfo = get_argument_info;
  g_layer.clGetKernelWorkGroupInfo = get_work_group_info;
  g_layer.clSetKernelArg = set_argument;
  g_layer.clEnqueueNDRangeKernel = enqueue;
  *entries_ret = static_cast<cl_uint>(known);
  *layer = &g_layer;
  return CL_SUCCESS;
}
}
