// One profile per device for the life of the process. Device ids are not reference counted, so
// nothing here owns an OpenCL object.
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "cl/cl.h"
#include "device/host.h"
#include "netcl/device.h"

namespace netcl {
namespace {

struct Profiles {
  std::shared_mutex mutex;
  std::map<_cl_device_id*, std::unique_ptr<const ExtendedDeviceProfile>> of_device;
};

Profiles& profiles() {
  // Leaked: callers keep references, also in static objects that are destroyed after this.
  static auto* all = new Profiles();
  return *all;
}

const ExtendedDeviceProfile* find(Profiles& all, const Device& device) {
  const std::shared_lock lock(all.mutex);
  const auto found = all.of_device.find(device.get());
  return found == all.of_device.end() ? nullptr : found->second.get();
}

}  // namespace

DeviceQueries device_queries(const Device& device) {
  return device ? cl::query_device(device) : detail::host_queries();
}

const ExtendedDeviceProfile& device_profile(const Device& device) {
  auto& all = profiles();
  if (const auto* known = find(all, device)) return *known;
  // Asked outside the lock: a driver may take its time. The first of two threads wins.
  auto made = std::make_unique<const ExtendedDeviceProfile>(make_profile(device_queries(device)));
  const std::unique_lock lock(all.mutex);
  return *all.of_device.try_emplace(device.get(), std::move(made)).first->second;
}

const ExtendedDeviceProfile& device_profile(const Queue& queue) {
  return device_profile(queue.device());
}

}  // namespace netcl
