// From a driver's answers to a profile. Nothing here asks a device or remembers one, so the profile
// of a recorded device is the same on every machine.
#include <algorithm>
#include <bit>
#include <charconv>

#include "base/env.h"
#include "base/log.h"
#include "device/driver_limits.h"
#include "device/family.h"
#include "device/strategy.h"
#include "netcl/device.h"

namespace netcl {
namespace {

using detail::FamilyTraits;

// Bits of CL_DEVICE_TYPE and CL_DEVICE_SVM_CAPABILITIES: this layer has no OpenCL headers.
constexpr std::uint64_t kTypeCpu = 2, kTypeGpu = 4, kTypeAccelerator = 8;
constexpr std::uint64_t kSvmCoarse = 1, kSvmFineBuffer = 2, kSvmFineSystem = 4;
constexpr std::uint64_t kTinyLocalMemory = 24 * 1024, kUsefulLocalMemory = 16 * 1024;

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const auto end = std::min(words.find(' ', at), words.size());
    if (!word.empty() && words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// "OpenCL 3.0 CUDA" -> 3, 0
void parse_version(std::string_view text, int& major, int& minor) {
  constexpr std::string_view kPrefix = "OpenCL ";
  if (!text.starts_with(kPrefix)) return;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data() + kPrefix.size(), end, major);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '.')
    std::from_chars(first.ptr + 1, end, minor);
}

void copy_answers(const DeviceQueries& q, ExtendedDeviceProfile& p) {
  p.name = q.name;
  p.vendor = q.vendor;
  p.extensions = q.extensions;
  p.opencl_c_version = q.opencl_c_version;
  p.platform_name = q.platform_name;
  p.platform_version = q.platform_version;
  p.device_version = q.version;
  p.driver_version = q.driver_version;
  p.compute_units = std::max(1u, q.compute_units);
  p.clock_mhz = q.clock_mhz;
  p.max_work_group_size = std::max<std::size_t>(1, q.max_work_group_size);
  p.max_work_item_sizes = q.max_work_item_sizes;
  p.global_mem_size = q.global_mem_size;
  p.max_mem_alloc_size = q.max_mem_alloc_size;
  p.local_mem_size = q.local_mem_size;
  p.global_mem_cache_size = q.global_cache_size;
  p.global_mem_cache_line_size = q.cache_line_size;
  p.max_constant_buffer_size = q.constant_buffer_size;
  p.preferred_vector_width_float = std::max(1u, q.preferred_width_float);
  p.preferred_vector_width_half = q.preferred_width_half;
  p.native_vector_width_float = std::max(1u, q.native_width_float);
  p.base_align_bytes = std::max(1u, q.base_align_bits / 8);
  p.max_sub_groups = q.max_sub_groups;
  p.sub_group_sizes = q.sub_group_sizes;
  p.has_images = q.has_images;
  p.local_mem_is_real = q.local_mem_is_real;
}

void derive_features(const DeviceQueries& q, ExtendedDeviceProfile& p) {
  p.device_type = device_type_name(q.type_bits);
  p.is_cpu = p.device_type == "cpu";
  p.is_integrated = q.host_unified_memory || p.is_cpu;
  parse_version(q.version, p.opencl_major, p.opencl_minor);
  // A part of a word is not enough: cl_arm_..._fp16 promises no arithmetic.
  p.has_fp16 = p.supports_fp16 = p.has_extension("cl_khr_fp16");
  p.has_fp64 = q.double_config != 0 || p.has_extension("cl_khr_fp64");
  p.has_subgroups = q.max_sub_groups > 0 || p.has_extension("cl_khr_subgroups") ||
                    p.has_extension("cl_intel_subgroups");
  p.fast_atomics = p.has_extension("cl_khr_int64_base_atomics") ||
                   p.has_extension("cl_khr_int64_extended_atomics");
  // 32-bit atomics are core since OpenCL 1.1.
  const bool core_atomics = p.opencl_major > 1 || (p.opencl_major == 1 && p.opencl_minor >= 1);
  p.has_local_atomics = core_atomics || p.has_extension("cl_khr_local_int32_base_atomics");
  p.has_global_atomics = core_atomics || p.has_extension("cl_khr_global_int32_base_atomics");
  p.has_coarse_svm = (q.svm_capabilities & kSvmCoarse) != 0;
  p.has_fine_grain_svm = (q.svm_capabilities & (kSvmFineBuffer | kSvmFineSystem)) != 0;
  p.tiny_local_mem = q.local_mem_size < kTinyLocalMemory;
  p.use_local_memory = q.local_mem_is_real && q.local_mem_size >= kUsefulLocalMemory;
}

void limit_vectors(ExtendedDeviceProfile& p) {
  const auto floats = static_cast<std::uint32_t>(detail::max_vector_bytes(p) / 4);
  p.native_vector_width_float = std::min(p.native_vector_width_float, floats);
  p.preferred_vector_width_float = std::min(p.preferred_vector_width_float, floats);
}

struct Throughput {
  double lanes, bytes_per_flop;
};

Throughput throughput(const DeviceQueries& q, const ExtendedDeviceProfile& p,
                      const FamilyTraits& traits) {
  // The data-centre chips of these two generations have half the lanes and twice the memory.
  const bool p100 = q.nv_compute_major == 6 && q.nv_compute_minor == 0;
  const bool a100 = q.nv_compute_major == 8 && q.nv_compute_minor == 0;
  if (p100 || a100) return {64, 0.08};
  if (p.is_cpu) return {static_cast<double>(p.native_vector_width_float), traits.bytes_per_flop};
  return {static_cast<double>(traits.lanes), traits.bytes_per_flop};
}

void estimate_speed(const DeviceQueries& q, ExtendedDeviceProfile& p, const FamilyTraits& traits) {
  const auto [lanes, bytes_per_flop] = throughput(q, p, traits);
  p.estimated_flops = 2.0 * lanes * p.compute_units * p.clock_mhz * 1e6;
  p.memory_bandwidth = p.estimated_flops * bytes_per_flop;
}

std::size_t item_limit(const ExtendedDeviceProfile& p, std::size_t axis) {
  const auto& sizes = p.max_work_item_sizes;
  const auto limit = axis < sizes.size() ? sizes[axis] : p.max_work_group_size;
  return std::bit_floor(std::max<std::size_t>(1, std::min(limit, p.max_work_group_size)));
}

int clamped(int wanted, std::size_t limit) {
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(wanted), limit));
}

void clamp_work_groups(ExtendedDeviceProfile& p) {
  p.optimal_wg_size_1d = clamped(p.optimal_wg_size_1d, item_limit(p, 0));
  auto& [x, y] = p.optimal_wg_size_2d;
  x = clamped(x, item_limit(p, 0));
  y = clamped(y, item_limit(p, 1));
  while (static_cast<std::size_t>(x) * static_cast<std::size_t>(y) > p.max_work_group_size)
    (y >= x ? y : x) /= 2;
}

// A tile of each factor has to fit, in float, beside what the compiler uses for itself.
void clamp_tiles(ExtendedDeviceProfile& p) {
  if (!p.use_local_memory) return;
  const auto bytes = [&] {
    return static_cast<std::uint64_t>((p.optimal_tile_m + p.optimal_tile_n) * p.optimal_tile_k) * 4;
  };
  while (bytes() > p.local_mem_size / 2 && p.optimal_tile_m > 8) {
    p.optimal_tile_m /= 2;
    p.optimal_tile_n /= 2;
  }
}

void choose_starting_points(ExtendedDeviceProfile& p, const FamilyTraits& traits) {
  p.optimal_tile_m = traits.tile_m;
  p.optimal_tile_n = traits.tile_n;
  p.optimal_tile_k = traits.tile_k;
  p.optimal_wg_size_1d = traits.wg_1d;
  p.optimal_wg_size_2d = traits.wg_2d;
  clamp_tiles(p);
  clamp_work_groups(p);
}

}  // namespace

// A simulator such as Oclgrind sets several bits at once. It counts as what comes first here, so
// that it runs, and checks, the kernels with barriers and local memory that a GPU would run.
std::string device_type_name(std::uint64_t type_bits) {
  if ((type_bits & kTypeGpu) != 0) return "gpu";
  if ((type_bits & kTypeAccelerator) != 0) return "accel";
  if ((type_bits & kTypeCpu) != 0) return "cpu";
  return "other";
}

bool DeviceProfile::has_extension(std::string_view extension) const {
  return has_word(extensions, extension);
}

ExtendedDeviceProfile make_profile(const DeviceQueries& queries) {
  ExtendedDeviceProfile profile;
  profile.gpu_family = detail::classify(queries);
  const auto& traits = detail::traits_of(profile.gpu_family);
  copy_answers(queries, profile);
  derive_features(queries, profile);
  limit_vectors(profile);
  estimate_speed(queries, profile, traits);
  choose_starting_points(profile, traits);
  return profile;
}

std::string_view detail::asked_strategy() {
  const auto asked = env::text("NETCL_KERNEL_STRATEGY");
  for (const std::string_view known : {"portable", "optimized", "auto"})
    if (asked == known) return known;
  if (!asked.empty())
    log::warn_once(fmt::format(
        "NETCL_KERNEL_STRATEGY={} is none of portable, optimized, auto: using auto", asked));
  return "auto";
}

std::string_view detail::decide_strategy(std::string_view asked, const DeviceProfile& profile) {
  if (asked != "auto") return asked;
  if (profile.is_cpu || profile.tiny_local_mem) return "portable";
  // Vendors write more than their name: "NVIDIA Corporation", "Advanced Micro Devices, Inc."
  const bool known_vendor = contains(profile.vendor, "nvidia") ||
                            contains(profile.vendor, "advanced micro devices") ||
                            contains_word(profile.vendor, "amd");
  return profile.has_subgroups || profile.has_fp16 || known_vendor ? "optimized" : "portable";
}

std::string kernel_strategy(const DeviceProfile& profile) {
  return std::string(detail::decide_strategy(detail::asked_strategy(), profile));
}

}  // namespace netcl
