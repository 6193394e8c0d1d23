// What a device can do: raw answers of the driver (DeviceQueries), and the profiles that kernels
// and rules read. Profiles are pure functions of the queries, so a recorded device can be studied
// on any machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl/opencl.h"

namespace netcl {

// The answers of one device, unchanged. Fields that a driver does not know stay 0 or empty.
struct DeviceQueries {
  std::string name, vendor, version, driver_version, opencl_c_version, extensions;
  std::string platform_name, platform_version;
  std::uint64_t type_bits = 0;  // CL_DEVICE_TYPE
  std::uint32_t vendor_id = 0;
  std::uint32_t compute_units = 0, clock_mhz = 0, address_bits = 0, base_align_bits = 0;
  std::size_t max_work_group_size = 0;
  std::vector<std::size_t> max_work_item_sizes;
  std::uint64_t global_mem_size = 0, max_mem_alloc_size = 0, local_mem_size = 0;
  std::uint64_t global_cache_size = 0, constant_buffer_size = 0;
  std::uint32_t cache_line_size = 0;
  bool local_mem_is_real = false;  // CL_DEVICE_LOCAL_MEM_TYPE is CL_LOCAL
  bool host_unified_memory = false, has_images = false, available = true, compiler = true;
  std::uint32_t preferred_width_float = 0, preferred_width_half = 0, preferred_width_double = 0;
  std::uint32_t native_width_float = 0;
  std::uint64_t double_config = 0, half_config = 0, svm_capabilities = 0;
  std::uint32_t max_sub_groups = 0;
  std::vector<std::size_t> sub_group_sizes;  // Intel's list, or the warp / wavefront width
  std::uint32_t nv_compute_major = 0, nv_compute_minor = 0;  // cl_nv_device_attribute_query
  std::string amd_board_name;                                // cl_amd_device_attribute_query
  std::uint32_t amd_gfxip_major = 0, amd_gfxip_minor = 0;
  std::uint32_t intel_ip_version = 0;  // cl_intel_device_attribute_query
};

enum class GPUFamily {
  unknown,
  cpu,
  nvidia_maxwell,
  nvidia_pascal,
  nvidia_volta,
  nvidia_turing,
  nvidia_ampere,
  nvidia_ada,
  nvidia_hopper,
  nvidia_blackwell,
  nvidia_other,
  amd_gcn,
  amd_vega,
  amd_cdna,
  amd_rdna,
  amd_rdna2,
  amd_rdna3,
  amd_rdna4,
  amd_other,
  intel_gen,
  intel_xe,   // Xe-LP: Tiger Lake ... Raptor Lake
  intel_arc,  // Xe-HPG
  intel_xe_hpc,
  intel_xe2,
  intel_other,
  apple,
  arm_mali,
  qualcomm_adreno,
};

std::string_view name_of(GPUFamily family);  // "NVIDIA_AMPERE"

struct DeviceProfile {
  std::string name;
  std::string vendor;
  std::string device_type;  // "gpu", "cpu", "accel", "other"
  std::uint32_t compute_units = 1;
  std::size_t max_work_group_size = 1;
  std::vector<std::size_t> max_work_item_sizes;
  std::uint64_t global_mem_size = 0;
  std::uint64_t local_mem_size = 0;
  std::uint32_t preferred_vector_width_float = 1;
  std::string extensions;
  std::string opencl_c_version;
  bool has_fp16 = false;       // arithmetic in half: cl_khr_fp16
  bool supports_fp16 = false;  // the same, the other documented name
  bool has_subgroups = false;
  bool is_cpu = false;          // by the type bits, never by a name
  bool tiny_local_mem = false;  // under 24 KiB
  bool fast_atomics = false;    // 64-bit atomics

  bool has_extension(std::string_view extension) const;  // a whole word of `extensions`
  bool operator==(const DeviceProfile& other) const = default;
};

struct ExtendedDeviceProfile : DeviceProfile {
  std::string platform_name, platform_version, device_version, driver_version;
  int opencl_major = 0, opencl_minor = 0;
  std::uint32_t clock_mhz = 0;
  std::uint32_t max_sub_groups = 0;
  std::vector<std::size_t> sub_group_sizes;
  std::uint64_t max_constant_buffer_size = 0;
  std::uint64_t global_mem_cache_size = 0;
  std::uint32_t global_mem_cache_line_size = 0;
  std::uint64_t max_mem_alloc_size = 0;
  std::uint32_t preferred_vector_width_half = 0;
  std::uint32_t native_vector_width_float = 1;
  std::size_t base_align_bytes = 1;  // sub-buffers start at multiples of this
  bool has_fp64 = false;
  bool has_local_atomics = false, has_global_atomics = false;
  bool has_images = false;
  bool local_mem_is_real = false;  // false: local memory is ordinary memory (CPU devices)
  bool has_coarse_svm = false, has_fine_grain_svm = false;
  GPUFamily gpu_family = GPUFamily::unknown;
  bool is_integrated = false;  // host and device share memory
  // Rough figures from unit counts and clocks; 0 where nothing is known. For ordering, not claims.
  double estimated_flops = 0, memory_bandwidth = 0;
  // Starting points of the kernel rules.
  int optimal_tile_m = 32, optimal_tile_n = 32, optimal_tile_k = 8;
  int optimal_wg_size_1d = 256;
  std::pair<int, int> optimal_wg_size_2d{16, 16};
  bool use_vectorization = true, use_local_memory = true;

  bool operator==(const ExtendedDeviceProfile& other) const = default;
};

// The profile of a recorded or queried device.
ExtendedDeviceProfile make_profile(const DeviceQueries& queries);

// Cached per device; an empty device is the CPU backend.
const ExtendedDeviceProfile& device_profile(const Device& device);
const ExtendedDeviceProfile& device_profile(const Queue& queue);
DeviceQueries device_queries(const Device& device);

// "portable" or "optimized"; NETCL_KERNEL_STRATEGY wins.
std::string kernel_strategy(const DeviceProfile& profile);

}  // namespace netcl
