// Stands in for OpenCL in builds without it: there are no platforms, and whatever needs a device
// says so. Which of the two is compiled is CMake's choice.
#include "base/check.h"
#include "cl/cl.h"

namespace netcl {

#define NETCL_NO_REFERENCES(Object)             \
  template <>                                   \
  void Ref<Object>::retain(Object*) noexcept {} \
  template <>                                   \
  void Ref<Object>::release(Object*) noexcept {}
NETCL_NO_REFERENCES(_cl_context)
NETCL_NO_REFERENCES(_cl_command_queue)
NETCL_NO_REFERENCES(_cl_mem)
NETCL_NO_REFERENCES(_cl_event)
NETCL_NO_REFERENCES(_cl_program)
NETCL_NO_REFERENCES(_cl_kernel)
#undef NETCL_NO_REFERENCES

namespace cl {
namespace {

[[noreturn]] void absent(const char* call) {
  fail<DeviceError>("[{}] an OpenCL device is needed: netcl was built without OpenCL", call);
}

}  // namespace

bool is_built_in() { return false; }
std::string loader_problem() { return "netcl was built without OpenCL"; }
std::string loader_path() { return {}; }
std::vector<Platform> platforms() { return {}; }

DeviceQueries query_device(const Device&) { absent("clGetDeviceInfo"); }
std::string device_name(const Device&) { absent("clGetDeviceInfo"); }
Ref<_cl_context> create_context(const Device&) { absent("clCreateContext"); }
std::vector<Device> context_devices(_cl_context*) { absent("clGetContextInfo"); }
Ref<_cl_command_queue> create_queue(_cl_context*, const Device&, bool) {
  absent("clCreateCommandQueue");
}
QueueInfo queue_info(_cl_command_queue*) { absent("clGetCommandQueueInfo"); }
Buffer create_buffer(_cl_context*, Memory, std::size_t) { absent("clCreateBuffer"); }
Buffer wrap_host_memory(_cl_context*, void*, std::size_t) { absent("clCreateBuffer"); }
Buffer own_host_memory(_cl_context*, Pages, std::size_t) { absent("clCreateBuffer"); }
Buffer create_sub_buffer(const Buffer&, std::size_t, std::size_t) { absent("clCreateSubBuffer"); }
_cl_context* buffer_context(_cl_mem*) { absent("clGetMemObjectInfo"); }
void read(Queued, const Buffer&, std::size_t, std::size_t, void*, bool, Event*) {
  absent("clEnqueueReadBuffer");
}
void write(Queued, const Buffer&, std::size_t, std::size_t, const void*, bool, Event*) {
  absent("clEnqueueWriteBuffer");
}
void copy(Queued, const Buffer&, std::size_t, const Buffer&, std::size_t, std::size_t, Event*) {
  absent("clEnqueueCopyBuffer");
}
void fill(Queued, const Buffer&, std::size_t, std::size_t, const void*, std::size_t, Event*) {
  absent("clEnqueueFillBuffer");
}
void* map(Queued, const Buffer&, std::size_t, std::size_t) { absent("clEnqueueMapBuffer"); }
void unmap(Queued, const Buffer&, void*, Event*) { absent("clEnqueueUnmapMemObject"); }
Event marker(Queued) { absent("clEnqueueMarkerWithWaitList"); }
void barrier(Queued, WaitList) { absent("clEnqueueBarrierWithWaitList"); }
void flush(Queued) { absent("clFlush"); }
void finish(Queued) { absent("clFinish"); }
void see_the_end(Queued) noexcept {}
Progress event_progress(_cl_event*) { absent("clGetEventInfo"); }
void wait_blocking(_cl_event*) { absent("clWaitForEvents"); }
bool call_at_end(_cl_event*, std::function<void()>) { absent("clSetEventCallback"); }
EventTimes event_times(_cl_event*) { absent("clGetEventProfilingInfo"); }
Ref<_cl_program> program_from_source(_cl_context*, std::string_view) {
  absent("clCreateProgramWithSource");
}
Ref<_cl_program> program_from_binary(_cl_context*, const Device&, std::span<const std::byte>) {
  absent("clCreateProgramWithBinary");
}
BuildOutcome build(_cl_program*, const Device&, const std::string&) { absent("clBuildProgram"); }
std::vector<std::byte> program_binary(_cl_program*, const Device&) { absent("clGetProgramInfo"); }
std::vector<std::string> kernel_names(_cl_program*) { absent("clGetProgramInfo"); }
ProgramInfo program_info(_cl_program*) { absent("clGetProgramInfo"); }
std::optional<std::string> build_options(_cl_program*, const Device&) {
  absent("clGetProgramBuildInfo");
}
Ref<_cl_kernel> create_kernel(_cl_program*, const std::string&) { absent("clCreateKernel"); }
std::optional<std::vector<KernelParameter>> kernel_parameters(_cl_kernel*) {
  absent("clGetKernelArgInfo");
}
std::size_t kernel_parameter_count(_cl_kernel*) { absent("clGetKernelInfo"); }
std::string kernel_name(_cl_kernel*) { absent("clGetKernelInfo"); }
_cl_program* kernel_program(_cl_kernel*) { absent("clGetKernelInfo"); }
KernelLimits kernel_limits(_cl_kernel*, const Device&) { absent("clGetKernelWorkGroupInfo"); }
void set_argument(_cl_kernel*, unsigned, std::size_t, const void*) { absent("clSetKernelArg"); }
void enqueue(Queued, _cl_kernel*, unsigned, const std::size_t*, const std::size_t*, Event*) {
  absent("clEnqueueNDRangeKernel");
}

}  // namespace cl
}  // namespace netcl
