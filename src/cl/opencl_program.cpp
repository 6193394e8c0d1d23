// Programs and kernels.
#include <algorithm>

#include "base/process.h"
#include "base/signals.h"
#include "cl/cl.h"
#include "cl/opencl_api.h"

namespace netcl::cl {
namespace {

// False where the driver does not know its parameters (without -cl-kernel-arg-info, or of a
// binary); trouble of the moment is an error, so that nothing half known is kept.
bool knows_parameter(cl_int code) {
  if (code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY)
    raise("clGetKernelArgInfo", code);
  return code == CL_SUCCESS;
}

bool ask_text(const Api& cl, cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
              std::string& text) {
  std::size_t size = 0;
  if (!knows_parameter(cl.GetKernelArgInfo(kernel, index, what, 0, nullptr, &size))) return false;
  text.resize(size);
  if (!knows_parameter(cl.GetKernelArgInfo(kernel, index, what, size, text.data(), nullptr)))
    return false;
  text.resize(std::min(text.find('\0'), size));
  return true;
}

AddressSpace address_space(cl_kernel_arg_address_qualifier qualifier) {
  switch (qualifier) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL:
      return AddressSpace::global;
    case CL_KERNEL_ARG_ADDRESS_LOCAL:
      return AddressSpace::local;
    case CL_KERNEL_ARG_ADDRESS_CONSTANT:
      return AddressSpace::constant;
    default:
      return AddressSpace::value;
  }
}

std::string build_text(const Api& cl, cl_program program, cl_device_id device,
                       cl_program_build_info what) {
  std::size_t size = 0;
  if (cl.GetProgramBuildInfo(program, device, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  if (cl.GetProgramBuildInfo(program, device, what, size, text.data(), nullptr) != CL_SUCCESS)
    return {};
  text.resize(std::min(text.find('\0'), size));
  return text;
}

// `ask(size, value, &needed)` is a query whose result is text.
template <class Query>
std::string text_of(const char* call, const Query& ask) {
  std::size_t size = 0;
  check(call, ask(0, nullptr, &size));
  std::string text(size, '\0');
  check(call, ask(size, text.data(), nullptr));
  text.resize(std::min(text.find('\0'), size));
  return text;
}

std::string program_text(const Api& cl, cl_program program, cl_program_info what) {
  return text_of("clGetProgramInfo", [&](std::size_t size, void* value, std::size_t* needed) {
    return cl.GetProgramInfo(program, what, size, value, needed);
  });
}

std::vector<cl_device_id> program_devices(const Api& cl, cl_program program) {
  cl_uint count = 0;
  check("clGetProgramInfo",
        cl.GetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, nullptr));
  std::vector<cl_device_id> devices(count);
  check("clGetProgramInfo",
        cl.GetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof(cl_device_id), devices.data(),
                          nullptr));
  return devices;
}

}  // namespace

Ref<_cl_program> program_from_source(_cl_context* context, std::string_view source) {
  const auto& cl = api("clCreateProgramWithSource");
  cl_int code = CL_SUCCESS;
  const char* text = source.data();
  const std::size_t length = source.size();
  auto* program = cl.CreateProgramWithSource(context, 1, &text, &length, &code);
  check("clCreateProgramWithSource", code);
  return Ref<_cl_program>::adopt(program);
}

Ref<_cl_program> program_from_binary(_cl_context* context, const Device& device,
                                     std::span<const std::byte> binary) {
  const auto& cl = api("clCreateProgramWithBinary");
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  cl_device_id id = device.get();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t length = binary.size();
  auto* program = cl.CreateProgramWithBinary(context, 1, &id, &length, &bytes, &status, &code);
  auto ref = Ref<_cl_program>::adopt(program);
  return code == CL_SUCCESS && status == CL_SUCCESS ? ref : Ref<_cl_program>();
}

BuildOutcome build(_cl_program* program, const Device& device, const std::string& options) {
  const auto& cl = api("clBuildProgram");
  const KeepSignalHandlers keep;
  cl_device_id id = device.get();
  const auto code = cl.BuildProgram(program, 1, &id, options.c_str(), nullptr, nullptr);
  process::mark_driver_used();  // drivers load their compiler only now
  return {code == CL_SUCCESS, build_text(cl, program, id, CL_PROGRAM_BUILD_LOG), code};
}

std::vector<std::byte> program_binary(_cl_program* program, const Device& device) {
  const auto& cl = api("clGetProgramInfo");
  const auto devices = program_devices(cl, program);
  const auto count = devices.size();
  std::vector<std::size_t> sizes(count);
  check("clGetProgramInfo", cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES,
                                              count * sizeof(std::size_t), sizes.data(), nullptr));
  std::vector<std::vector<std::byte>> binaries(count);
  std::vector<unsigned char*> pointers(count);
  for (std::size_t i = 0; i < count; ++i) {
    binaries[i].resize(sizes[i]);
    pointers[i] = reinterpret_cast<unsigned char*>(binaries[i].data());
  }
  check("clGetProgramInfo",
        cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof(unsigned char*),
                          pointers.data(), nullptr));
  const auto found = std::find(devices.begin(), devices.end(), device.get());
  return found == devices.end() ? std::vector<std::byte>()
                                : binaries[static_cast<std::size_t>(found - devices.begin())];
}

std::vector<std::string> kernel_names(_cl_program* program) {
  const auto text = program_text(api("clGetProgramInfo"), program, CL_PROGRAM_KERNEL_NAMES);
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(';', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

ProgramInfo program_info(_cl_program* program) {
  const auto& cl = api("clGetProgramInfo");
  cl_context context = nullptr;
  check("clGetProgramInfo",
        cl.GetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof context, &context, nullptr));
  const auto devices = program_devices(cl, program);
  return {context, {devices.begin(), devices.end()}, program_text(cl, program, CL_PROGRAM_SOURCE)};
}

std::optional<std::string> build_options(_cl_program* program, const Device& device) {
  const auto& cl = api("clGetProgramBuildInfo");
  cl_build_status status = CL_BUILD_NONE;
  const auto code = cl.GetProgramBuildInfo(program, device.get(), CL_PROGRAM_BUILD_STATUS,
                                           sizeof status, &status, nullptr);
  if (code != CL_SUCCESS || status != CL_BUILD_SUCCESS) return std::nullopt;
  return build_text(cl, program, device.get(), CL_PROGRAM_BUILD_OPTIONS);
}

Ref<_cl_kernel> create_kernel(_cl_program* program, const std::string& name) {
  const auto& cl = api("clCreateKernel");
  cl_int code = CL_SUCCESS;
  auto* kernel = cl.CreateKernel(program, name.c_str(), &code);
  check("clCreateKernel", code);
  return Ref<_cl_kernel>::adopt(kernel);
}

std::size_t kernel_parameter_count(_cl_kernel* kernel) {
  cl_uint count = 0;
  check("clGetKernelInfo",
        api("clGetKernelInfo")
            .GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr));
  return count;
}

std::string kernel_name(_cl_kernel* kernel) {
  const auto& cl = api("clGetKernelInfo");
  return text_of("clGetKernelInfo", [&](std::size_t size, void* value, std::size_t* needed) {
    return cl.GetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, value, needed);
  });
}

_cl_program* kernel_program(_cl_kernel* kernel) {
  cl_program program = nullptr;
  check("clGetKernelInfo",
        api("clGetKernelInfo")
            .GetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr));
  return program;
}

std::optional<std::vector<KernelParameter>> kernel_parameters(_cl_kernel* kernel) {
  const auto& cl = api("clGetKernelArgInfo");
  std::vector<KernelParameter> parameters(kernel_parameter_count(kernel));
  for (cl_uint i = 0; i < parameters.size(); ++i) {
    auto& parameter = parameters[i];
    cl_kernel_arg_address_qualifier space = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    cl_kernel_arg_type_qualifier qualifier = 0;
    const auto ask = [&](cl_kernel_arg_info what, auto& value) {
      return knows_parameter(cl.GetKernelArgInfo(kernel, i, what, sizeof value, &value, nullptr));
    };
    if (!ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER, space) ||
        !ask(CL_KERNEL_ARG_TYPE_QUALIFIER, qualifier) ||
        !ask_text(cl, kernel, i, CL_KERNEL_ARG_NAME, parameter.name) ||
        !ask_text(cl, kernel, i, CL_KERNEL_ARG_TYPE_NAME, parameter.type))
      return std::nullopt;
    parameter.space = address_space(space);
    parameter.read_only =
        parameter.space == AddressSpace::constant || (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
  }
  return parameters;
}

KernelLimits kernel_limits(_cl_kernel* kernel, const Device& device) {
  const auto& cl = api("clGetKernelWorkGroupInfo");
  KernelLimits limits{};
  const auto ask = [&](cl_kernel_work_group_info what, auto& value) {
    check("clGetKernelWorkGroupInfo",
          cl.GetKernelWorkGroupInfo(kernel, device.get(), what, sizeof value, &value, nullptr));
  };
  ask(CL_KERNEL_WORK_GROUP_SIZE, limits.work_group_size);
  ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, limits.preferred_multiple);
  ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, limits.required_size);
  cl_ulong bytes = 0;
  ask(CL_KERNEL_LOCAL_MEM_SIZE, bytes);
  limits.local_bytes = bytes;
  ask(CL_KERNEL_PRIVATE_MEM_SIZE, bytes);
  limits.private_bytes = bytes;
  return limits;
}

void set_argument(_cl_kernel* kernel, unsigned index, std::size_t bytes, const void* value) {
  check("clSetKernelArg", api("clSetKernelArg").SetKernelArg(kernel, index, bytes, value));
}

void enqueue(Queued queue, _cl_kernel* kernel, unsigned dimensions, const std::size_t* global,
             const std::size_t* local, Event* done) {
  const auto& cl = api("clEnqueueNDRangeKernel");
  cl_event event = nullptr;
  {
    const std::lock_guard lock(enqueue_mutex(queue));
    check("clEnqueueNDRangeKernel",
          cl.EnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, global, local, 0, nullptr,
                                  done == nullptr ? nullptr : &event));
  }
  if (done != nullptr) *done = Event(Ref<_cl_event>::adopt(event));
}

}  // namespace netcl::cl
