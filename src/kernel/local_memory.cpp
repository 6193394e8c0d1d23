#include "kernel/local_memory.h"

namespace netcl {
namespace {

constexpr std::size_t kAlignment = 128;  // of the largest OpenCL type, a double16

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

bool keeps_first_local_size(const DeviceProfile& profile) {
  return profile.name.starts_with("zink ");
}

std::size_t free_local_bytes(const DeviceProfile& profile, const cl::KernelLimits& limits) {
  const auto all = static_cast<std::size_t>(profile.local_mem_size);
  const auto own = aligned(static_cast<std::size_t>(limits.local_bytes));
  return own < all ? all - own : 0;
}

std::size_t filling_bytes(std::span<const KernelArg> args, std::size_t index, std::size_t all) {
  const auto own = aligned(args[index].size());
  std::size_t asked = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind() != KernelArg::Kind::local) continue;
    if (asked == 0 && i != index) return own;  // not the first
    asked += aligned(args[i].size());
  }
  const auto units = all / kAlignment * kAlignment;
  return asked < units ? own + units - asked : own;
}

std::size_t local_argument_bytes(const Device& device, const cl::KernelLimits& limits,
                                 std::span<const KernelArg> args, std::size_t index) {
  const auto& profile = device_profile(device);
  if (!keeps_first_local_size(profile)) [[likely]]
    return args[index].size();
  return filling_bytes(args, index, free_local_bytes(profile, limits));
}

}  // namespace netcl
