// Discovery, selectors and the handles made from them.
#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/cl.h"
#include "netcl/device.h"
#include "netcl/diagnostics.h"

namespace netcl {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// "gpu:1" is the name "gpu" and the place 1; the place is 0 when it is not given.
struct Selector {
  std::string name;
  std::size_t index = 0;
  bool has_index = false;
};

Selector parse_index(const std::string& text) {
  Selector selector{text};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return selector;
  std::size_t index = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, index);
  if (error != std::errc{} || rest != end) return selector;
  return {text.substr(0, colon), index, true};
}

bool is_type_name(std::string_view name) {
  return name == "gpu" || name == "cpu" || name == "accel" || name == "other";
}

using Devices = std::vector<DiscoveredDevice>;

const DiscoveredDevice* nth_of_type(const Devices& devices, std::string_view type,
                                    std::size_t index) {
  for (const auto& device : devices)
    if (device.device_type == type && index-- == 0) return &device;
  return nullptr;
}

const DiscoveredDevice* best(const Devices& devices) {
  for (const char* type : {"gpu", "accel", "cpu", "other"})
    if (const auto* found = nth_of_type(devices, type, 0)) return found;
  return nullptr;
}

const DiscoveredDevice* by_name(const Devices& devices, const Selector& selector) {
  auto skip = selector.index;
  for (const auto& device : devices)
    if (lower(device.device_name).find(selector.name) != std::string::npos ||
        lower(device.platform_name).find(selector.name) != std::string::npos)
      if (skip-- == 0) return &device;
  return nullptr;
}

// The OpenCL device that a selector other than "auto" and "cpu" means, or null.
const DiscoveredDevice* match(const Devices& devices, const std::string& text) {
  if (text == "opencl") return best(devices);
  auto selector = parse_index(text);
  if (selector.name == "opencl" && selector.has_index)
    return selector.index < devices.size() ? &devices[selector.index] : nullptr;
  constexpr std::string_view kPrefix = "opencl:";
  if (selector.name.starts_with(kPrefix)) {
    const auto type = selector.name.substr(kPrefix.size());
    if (is_type_name(type)) return nth_of_type(devices, type, selector.index);
  } else if (selector.name == "gpu" || selector.name == "accel") {
    return nth_of_type(devices, selector.name, selector.index);
  }
  if (const auto* found = by_name(devices, {text})) return found;
  return selector.has_index ? by_name(devices, selector) : nullptr;
}

std::string listing(const Devices& devices) {
  std::string text = "cpu (the CPU backend)";
  for (std::size_t i = 0; i < devices.size(); ++i)
    text += fmt::format(", opencl:{} ({} '{}' of platform '{}')", i, devices[i].device_type,
                        devices[i].device_name, devices[i].platform_name);
  return text;
}

DeviceHandle make_cpu_handle() {
  const CPUQueue queue;
  return {"netcl", device_profile(queue).name, "cpu", "cpu", Context(), queue};
}

DeviceHandle make_handle(const DiscoveredDevice& device) {
  const auto owned = cl::create_context(device.device);
  const auto context = Context::wrap(owned.get());
  const bool profiling = env::flag("NETCL_PROFILE_EVENTS") || !env::text("NETCL_PROFILE").empty();
  const auto queue = Queue::create(context, device.device, profiling);
  log::debug(1, "device '{}' of platform '{}' ({})", device.device_name, device.platform_name,
             device.device_type);
  return {device.platform_name, device.device_name, "cl", device.device_type, context, queue};
}

}  // namespace

struct DeviceManager::Impl {
  std::mutex mutex;
  bool discovered = false;
  Devices devices;
  std::vector<PlatformProblem> problems;
  std::map<_cl_device_id*, DeviceHandle> handles;  // null is the CPU backend
  std::map<std::string, DeviceHandle, std::less<>> selectors;

  void discover() {
    if (discovered) return;
    for (const auto& platform : cl::platforms()) {
      if (platform.devices.empty())
        problems.push_back({platform.name, platform.problem.empty() ? "the platform has no devices"
                                                                    : platform.problem});
      for (const auto& device : platform.devices) add(platform, device);
    }
    discovered = true;
  }

  // A driver that cannot even describe its device must not take the others down with it.
  void add(const cl::Platform& platform, const Device& device) {
    try {
      const auto queries = cl::query_device(device);
      if (!queries.available || !queries.compiler) {
        problems.push_back({platform.name, fmt::format("device '{}' is not available or has no "
                                                       "compiler",
                                                       queries.name)});
        return;
      }
      devices.push_back({platform.name, platform.version, queries.name,
                         device_type_name(queries.type_bits), device});
    } catch (const DeviceError& error) {
      problems.push_back({platform.name, error.what()});
    }
  }

  DeviceHandle handle_of(const DiscoveredDevice* device) {
    auto* id = device == nullptr ? nullptr : device->device.get();
    const auto found = handles.find(id);
    if (found != handles.end()) return found->second;
    return handles.emplace(id, device == nullptr ? make_cpu_handle() : make_handle(*device))
        .first->second;
  }

  // "auto": a device whose context cannot be made is passed over for the next one.
  DeviceHandle best_handle() {
    auto remaining = devices;
    while (const auto* candidate = best(remaining)) {
      try {
        return handle_of(candidate);
      } catch (const DeviceError& error) {
        log::warn_once(
            fmt::format("device '{}' cannot be used: {}", candidate->device_name, error.what()));
        remaining.erase(remaining.begin() + (candidate - remaining.data()));
      }
    }
    return handle_of(nullptr);
  }

  std::optional<DeviceHandle> resolve(const std::string& selector) {
    if (selector == "auto") return best_handle();
    if (selector == "cpu") return handle_of(nullptr);
    if (const auto* found = match(devices, selector)) return handle_of(found);
    return std::nullopt;
  }
};

DeviceManager::DeviceManager() : impl_(std::make_unique<Impl>()) {}
DeviceManager::~DeviceManager() = default;

std::vector<DiscoveredDevice> DeviceManager::discover() {
  process::require("discover");
  const std::lock_guard lock(impl_->mutex);
  impl_->discover();
  return impl_->devices;
}

std::vector<PlatformProblem> DeviceManager::problems() {
  discover();
  const std::lock_guard lock(impl_->mutex);
  return impl_->problems;
}

void DeviceManager::rediscover() {
  const std::lock_guard lock(impl_->mutex);
  impl_->discovered = false;
  impl_->devices.clear();
  impl_->problems.clear();
  impl_->selectors.clear();
}

std::optional<DeviceHandle> DeviceManager::find_device(std::string_view selector) {
  process::require("device");
  auto wanted = lower(selector.empty() ? "auto" : selector);
  if (wanted == "auto") {
    wanted = lower(env::text("NETCL_DEVICE"));
    if (wanted.empty()) wanted = "auto";
  }
  const std::lock_guard lock(impl_->mutex);
  const auto cached = impl_->selectors.find(wanted);
  if (cached != impl_->selectors.end()) return cached->second;
  impl_->discover();
  auto handle = impl_->resolve(wanted);
  if (handle) impl_->selectors.emplace(wanted, *handle);
  return handle;
}

DeviceHandle DeviceManager::default_device(std::string_view selector) {
  if (auto handle = find_device(selector)) return *handle;
  const auto shown = lower(selector) == "auto" ? "NETCL_DEVICE=" + env::text("NETCL_DEVICE")
                                               : std::string(selector);
  fail<DeviceError>("[device] a selector must match a device: '{}'; {}", shown, device_advice());
}

std::string device_advice() {
  const auto found = manager().discover();
  const char* help =
      !found.empty() ? ""
      : cl::is_built_in()
          ? ". No OpenCL device was found: install a driver (pocl-opencl-icd for any CPU, "
            "intel-opencl-icd, mesa-opencl-icd or the vendor's own for GPUs); "
            "`netcl doctor` looks for what is missing"
          : ". This netcl was built without OpenCL: install one built with it";
  return fmt::format("there are: {}{}", listing(found), help);
}

bool built_with_opencl() { return cl::is_built_in(); }

DeviceManager& manager() {
  static auto* instance = new DeviceManager();  // leaked: handles must outlive static objects
  return *instance;
}

}  // namespace netcl
