// The devices that tests run on: the CPU backend and every OpenCL device there is.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "netcl/device.h"

namespace netcl::test {

inline std::vector<DeviceHandle> opencl_devices() {
  std::vector<DeviceHandle> handles;
  for (std::size_t i = 0; i < manager().discover().size(); ++i)
    handles.push_back(manager().default_device("opencl:" + std::to_string(i)));
  return handles;
}

inline std::vector<DeviceHandle> all_devices() {
  auto handles = opencl_devices();
  handles.push_back(manager().default_device("cpu"));
  return handles;
}

template <class F>
void on_every_device(F&& f) {
  for (const auto& handle : all_devices()) {
    SCOPED_TRACE(handle.backend + " " + handle.device_name);
    f(handle.queue);
  }
}

// For tests that need OpenCL: returns from the test with a visible reason where there is none.
#define NETCL_NEED_OPENCL()                      \
  if (netcl::test::opencl_devices().empty()) {   \
    GTEST_SKIP() << "there is no OpenCL device"; \
  }

}  // namespace netcl::test
