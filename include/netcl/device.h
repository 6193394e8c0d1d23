// Finding devices and choosing one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "netcl/capabilities.h"
#include "netcl/opencl.h"

namespace netcl {

// A device that is ready to be used. Treat it as immutable; copies share context and queue.
// `auto [context, queue] = manager().default_device();` works as well.
struct DeviceHandle {
  std::string platform_name;
  std::string device_name;
  std::string backend;      // "cl" or "cpu"
  std::string device_type;  // "gpu", "cpu", "accel", "other"
  Context context;          // empty for the CPU backend
  Queue queue;

  const ExtendedDeviceProfile& profile() const { return device_profile(queue); }
  bool operator==(const DeviceHandle& other) const { return queue == other.queue; }

  template <std::size_t I>
  auto get() const {
    if constexpr (I == 0) return context;
    if constexpr (I == 1) return queue;
  }
};

// One device that the drivers report.
struct DiscoveredDevice {
  std::string platform_name, platform_version;
  std::string device_name, device_type;
  Device device;
};

// A platform without usable devices, or a driver that answered with an error.
struct PlatformProblem {
  std::string platform_name;
  std::string problem;
};

class DeviceManager {
 public:
  DeviceManager();
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  // Every device of every platform, in the drivers' order; asked once, then remembered.
  std::vector<DiscoveredDevice> discover();
  std::vector<PlatformProblem> problems();
  void rediscover();  // forgets what `discover` remembered; handles stay valid

  // The device that a selector means:
  //   "auto"           the best: a GPU, else an accelerator, else an OpenCL CPU, else the CPU
  //   backend
  //                    (NETCL_DEVICE replaces it)
  //   "cpu"            the CPU backend
  //   "gpu", "accel"   the first of this type; "gpu:1" the second
  //   "opencl"         the best OpenCL device; "opencl:cpu", "opencl:gpu" by type
  //   "opencl:2"       the device at this place of discover()
  //   anything else    a part of a platform or device name, upper or lower case
  // One that matches nothing is a DeviceError that lists what there is. Selectors that mean the
  // same device share one context and queue. Thread-safe.
  DeviceHandle default_device(std::string_view selector = "auto");
  // The same, but empty instead of an error.
  std::optional<DeviceHandle> find_device(std::string_view selector);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The manager of the process.
DeviceManager& manager();

// Makes a device the current thread's active one until the end of the scope; nests.
class ActiveDevice {
 public:
  explicit ActiveDevice(std::string_view selector);
  explicit ActiveDevice(DeviceHandle handle);
  ~ActiveDevice();
  ActiveDevice(const ActiveDevice&) = delete;
  ActiveDevice& operator=(const ActiveDevice&) = delete;
  const DeviceHandle& handle() const;
};

// The innermost ActiveDevice of this thread, else the "auto" device.
DeviceHandle get_active_device();

// False for a netcl that was built for the CPU backend alone.
bool built_with_opencl();

// "gpu", "cpu", "accel" or "other" for the bits of CL_DEVICE_TYPE.
std::string device_type_name(std::uint64_t type_bits);

}  // namespace netcl

template <>
struct std::tuple_size<netcl::DeviceHandle> : std::integral_constant<std::size_t, 2> {};
template <>
struct std::tuple_element<0, netcl::DeviceHandle> {
  using type = netcl::Context;
};
template <>
struct std::tuple_element<1, netcl::DeviceHandle> {
  using type = netcl::Queue;
};
