// The OpenCL functions netcl uses, looked up at run time: a machine without an OpenCL loader still
// runs netcl (on the CPU backend), and `netcl doctor` can say what is missing.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <mutex>

namespace netcl::cl {

#define NETCL_OPENCL_FUNCTIONS(X)   \
  X(GetPlatformIDs)                 \
  X(GetPlatformInfo)                \
  X(GetDeviceIDs)                   \
  X(GetDeviceInfo)                  \
  X(CreateContext)                  \
  X(RetainContext)                  \
  X(ReleaseContext)                 \
  X(GetContextInfo)                 \
  X(CreateCommandQueue)             \
  X(RetainCommandQueue)             \
  X(ReleaseCommandQueue)            \
  X(GetCommandQueueInfo)            \
  X(CreateBuffer)                   \
  X(CreateSubBuffer)                \
  X(RetainMemObject)                \
  X(ReleaseMemObject)               \
  X(GetMemObjectInfo)               \
  X(SetMemObjectDestructorCallback) \
  X(EnqueueReadBuffer)              \
  X(EnqueueWriteBuffer)             \
  X(EnqueueCopyBuffer)              \
  X(EnqueueFillBuffer)              \
  X(EnqueueMapBuffer)               \
  X(EnqueueUnmapMemObject)          \
  X(EnqueueMarkerWithWaitList)      \
  X(EnqueueBarrierWithWaitList)     \
  X(Flush)                          \
  X(Finish)                         \
  X(RetainEvent)                    \
  X(ReleaseEvent)                   \
  X(GetEventInfo)                   \
  X(SetEventCallback)               \
  X(WaitForEvents)                  \
  X(GetEventProfilingInfo)          \
  X(CreateProgramWithSource)        \
  X(CreateProgramWithBinary)        \
  X(BuildProgram)                   \
  X(GetProgramInfo)                 \
  X(GetProgramBuildInfo)            \
  X(RetainProgram)                  \
  X(ReleaseProgram)                 \
  X(CreateKernel)                   \
  X(RetainKernel)                   \
  X(ReleaseKernel)                  \
  X(GetKernelInfo)                  \
  X(GetKernelArgInfo)               \
  X(GetKernelWorkGroupInfo)         \
  X(SetKernelArg)                   \
  X(EnqueueNDRangeKernel)

struct Api {
#define NETCL_DECLARE(name) decltype(&::cl##name) name = nullptr;
  NETCL_OPENCL_FUNCTIONS(NETCL_DECLARE)
#undef NETCL_DECLARE
};

// Throws DeviceError when there is no usable loader, ForkError in a forked child.
const Api& api(const char* where);
// For Ref: null when no loader is there or calls are no longer allowed. Never throws.
const Api* api_if_alive() noexcept;

void check(const char* call, cl_int code);

// Held while something is enqueued. Enqueueing from several threads is allowed by the standard, but
// PoCL's single-threaded driver runs commands inside the call and then waits for itself for ever.
// Never held while waiting for the device.
std::mutex& enqueue_mutex(cl_command_queue queue);

}  // namespace netcl::cl
