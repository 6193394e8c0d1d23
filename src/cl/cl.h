// Everything netcl asks of OpenCL, without OpenCL's headers: the layers above work on this page
// alone, and stub.cpp stands in for it where netcl is built without OpenCL. Every function throws
// DeviceError with the name of the failed call; none is used by destructors (see Ref).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/pages.h"
#include "netcl/capabilities.h"
#include "netcl/opencl.h"

namespace netcl::cl {

// False in builds without OpenCL.
bool is_built_in();
// "" when the OpenCL loader is usable, else why it is not ("libOpenCL.so.1: cannot open ...").
std::string loader_problem();
// The file the loader came from, "" when there is none.
std::string loader_path();

struct Platform {
  _cl_platform_id* id = nullptr;
  std::string name, vendor, version;
  std::vector<Device> devices;
  std::string problem;  // why `devices` is empty although the platform answered
};

// All platforms of the loader, also those without devices. Empty without loader or drivers.
std::vector<Platform> platforms();
DeviceQueries query_device(const Device& device);
std::string device_name(const Device& device);

Ref<_cl_context> create_context(const Device& device);
std::vector<Device> context_devices(_cl_context* context);
Ref<_cl_command_queue> create_queue(_cl_context* context, const Device& device, bool profiling);
struct QueueInfo {
  _cl_context* context;
  Device device;
  bool profiling;
  bool in_order;
};
QueueInfo queue_info(_cl_command_queue* queue);

enum class Memory { device, host_visible };  // host_visible: ALLOC_HOST_PTR
Buffer create_buffer(_cl_context* context, Memory kind, std::size_t bytes);
// USE_HOST_PTR: the device works on the caller's memory, which must outlive the buffer.
Buffer wrap_host_memory(_cl_context* context, void* memory, std::size_t bytes);
// The same over memory that goes when the device needs it no more.
Buffer own_host_memory(_cl_context* context, Pages memory, std::size_t bytes);
Buffer create_sub_buffer(const Buffer& parent, std::size_t offset, std::size_t bytes);
_cl_context* buffer_context(_cl_mem* buffer);
// True for the codes with which drivers say that memory ran out.
bool is_allocation_failure(int code);

using Queued = _cl_command_queue*;
using WaitList = std::span<const Event>;
void read(Queued queue, const Buffer& from, std::size_t offset, std::size_t bytes, void* to,
          bool blocking, Event* done = nullptr);
void write(Queued queue, const Buffer& to, std::size_t offset, std::size_t bytes, const void* from,
           bool blocking, Event* done = nullptr);
void copy(Queued queue, const Buffer& from, std::size_t from_offset, const Buffer& to,
          std::size_t to_offset, std::size_t bytes, Event* done = nullptr);
void fill(Queued queue, const Buffer& buffer, std::size_t offset, std::size_t bytes,
          const void* pattern, std::size_t pattern_bytes, Event* done = nullptr);
// Blocking map for reading and writing; the pointer is valid until unmap.
void* map(Queued queue, const Buffer& buffer, std::size_t offset, std::size_t bytes);
void unmap(Queued queue, const Buffer& buffer, void* pointer, Event* done = nullptr);
Event marker(Queued queue);
void barrier(Queued queue, WaitList wait_for);
void flush(Queued queue);
void finish(Queued queue);
// After a wait for a transfer failed or was interrupted: its memory is the caller's, who may free
// it now. Waits for the queue, whatever the outcome.
void see_the_end(Queued queue) noexcept;

// What DeviceError::call() says of a command that failed while it ran.
inline constexpr const char* kAsynchronousCommand = "asynchronous command";
enum class Progress { pending, complete };
Progress event_progress(_cl_event* event);  // throws when the command failed
void wait_blocking(_cl_event* event);
// Has `ended` called, by any thread of the driver's, when the command has ended, also with an
// error; false where the driver does not do that. `ended` must neither throw nor call OpenCL.
bool call_at_end(_cl_event* event, std::function<void()> ended);
struct EventTimes {
  std::uint64_t queued, submitted, started, ended;  // nanoseconds of the device's clock
};
EventTimes event_times(_cl_event* event);

// ---- programs and kernels

Ref<_cl_program> program_from_source(_cl_context* context, std::string_view source);
// Empty when the driver refuses the binary.
Ref<_cl_program> program_from_binary(_cl_context* context, const Device& device,
                                     std::span<const std::byte> binary);
struct BuildOutcome {
  bool ok;
  std::string log;
  int code;
};
BuildOutcome build(_cl_program* program, const Device& device, const std::string& options);
std::vector<std::byte> program_binary(_cl_program* program, const Device& device);
std::vector<std::string> kernel_names(_cl_program* program);
struct ProgramInfo {
  _cl_context* context;
  std::vector<Device> devices;  // that it may be built for
  std::string source;           // empty when it was made from a binary
};
ProgramInfo program_info(_cl_program* program);
// The options it was built with; nothing when it was not built for the device.
std::optional<std::string> build_options(_cl_program* program, const Device& device);
Ref<_cl_kernel> create_kernel(_cl_program* program, const std::string& name);

enum class AddressSpace { global, local, constant, value };
struct KernelParameter {
  std::string name;  // "" where the driver does not say
  std::string type;  // "float*", "int", "" where the driver does not say
  AddressSpace space = AddressSpace::value;
  bool read_only = false;  // const or constant: the kernel cannot write through it
};
// Empty when the driver does not tell (the program was not built with -cl-kernel-arg-info).
std::optional<std::vector<KernelParameter>> kernel_parameters(_cl_kernel* kernel);
std::size_t kernel_parameter_count(_cl_kernel* kernel);
std::string kernel_name(_cl_kernel* kernel);
_cl_program* kernel_program(_cl_kernel* kernel);  // not a reference of its own

struct KernelLimits {
  std::size_t work_group_size;
  std::size_t preferred_multiple;
  std::array<std::size_t, 3> required_size;  // reqd_work_group_size, zeros when not given
  std::uint64_t local_bytes;
  std::uint64_t private_bytes;
};
KernelLimits kernel_limits(_cl_kernel* kernel, const Device& device);

void set_argument(_cl_kernel* kernel, unsigned index, std::size_t bytes, const void* value);
// `local` may be null: the driver chooses.
void enqueue(Queued queue, _cl_kernel* kernel, unsigned dimensions, const std::size_t* global,
             const std::size_t* local, Event* done = nullptr);

// ---- error text

std::string_view error_name(int code);  // "CL_OUT_OF_RESOURCES", "unknown OpenCL error"
[[noreturn]] void raise(const char* call, int code);

}  // namespace netcl::cl
