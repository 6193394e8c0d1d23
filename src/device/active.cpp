// The active device of a thread.
#include <vector>

#include "base/check.h"
#include "base/process.h"
#include "netcl/device.h"

namespace netcl {
namespace {

std::vector<DeviceHandle>& stack() {
  static thread_local std::vector<DeviceHandle> handles;
  return handles;
}

}  // namespace

ActiveDevice::ActiveDevice(std::string_view selector)
    : ActiveDevice(manager().default_device(selector)) {}

ActiveDevice::ActiveDevice(DeviceHandle handle) {
  check<ArgumentError>(static_cast<bool>(handle.queue),
                       "[ActiveDevice] the handle must have a queue: empty");
  stack().push_back(std::move(handle));
}

ActiveDevice::~ActiveDevice() { stack().pop_back(); }

const DeviceHandle& ActiveDevice::handle() const { return stack().back(); }

DeviceHandle get_active_device() {
  process::require("get_active_device");
  return stack().empty() ? manager().default_device("auto") : stack().back();
}

}  // namespace netcl
