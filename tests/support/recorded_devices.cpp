// The records. A vendor's devices share a driver, so each vendor has one function that fills in
// what they have in common; the table at the end holds what differs.
#include "support/recorded_devices.h"

#include <stdexcept>

namespace netcl::test {
namespace {

constexpr std::uint64_t kCpu = 2, kGpu = 4, kAccelerator = 8, kDefault = 1;
constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr std::uint64_t kAllDouble = 0x3f, kHalf = 0x7;
constexpr std::uint64_t kSvmCoarse = 1, kSvmFine = 2, kSvmSystem = 4, kSvmAtomics = 8;

constexpr char kAtomics32[] =
    "cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "
    "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics ";
constexpr char kAtomics64[] = "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics ";

DeviceQueries gpu(std::string name, std::uint32_t units, std::uint32_t mhz, std::uint64_t memory) {
  DeviceQueries q;
  q.name = std::move(name);
  q.type_bits = kGpu;
  q.compute_units = units;
  q.clock_mhz = mhz;
  q.global_mem_size = memory;
  q.max_mem_alloc_size = memory / 4;
  q.address_bits = 64;
  q.cache_line_size = 64;
  q.base_align_bits = 1024;
  q.local_mem_is_real = true;
  q.has_images = true;
  q.constant_buffer_size = 64 * kKiB;
  q.preferred_width_float = q.native_width_float = 1;
  return q;
}

DeviceQueries nvidia(std::string name, std::uint32_t major, std::uint32_t minor,
                     std::uint32_t units, std::uint32_t mhz, std::uint64_t memory) {
  auto q = gpu(std::move(name), units, mhz, memory);
  q.vendor = "NVIDIA Corporation";
  q.vendor_id = 0x10de;
  q.platform_name = "NVIDIA CUDA";
  q.platform_version = "OpenCL 3.0 CUDA 12.4.131";
  q.version = "OpenCL 3.0 CUDA";
  q.driver_version = "550.54.15";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions = std::string(kAtomics32) + kAtomics64 +
                 "cl_khr_fp64 cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_icd "
                 "cl_khr_gl_sharing cl_nv_compiler_options cl_nv_device_attribute_query "
                 "cl_nv_pragma_unroll cl_nv_copy_opts cl_nv_create_buffer cl_khr_device_uuid "
                 "cl_khr_pci_bus_info cl_khr_external_memory cl_khr_external_semaphore";
  q.max_work_group_size = 1024;
  q.max_work_item_sizes = {1024, 1024, 64};
  q.local_mem_size = 48 * kKiB;
  q.cache_line_size = 128;
  q.base_align_bits = 4096;
  q.global_cache_size = units * 48 * kKiB;
  q.preferred_width_double = 1;
  q.double_config = kAllDouble;
  q.svm_capabilities = kSvmCoarse;
  q.sub_group_sizes = {32};
  q.nv_compute_major = major;
  q.nv_compute_minor = minor;
  return q;
}

DeviceQueries amd(std::string name, std::string board, std::uint32_t major, std::uint32_t minor,
                  std::uint32_t units, std::uint32_t mhz, std::uint64_t memory) {
  auto q = gpu(std::move(name), units, mhz, memory);
  q.vendor = "Advanced Micro Devices, Inc.";
  q.vendor_id = 0x1002;
  q.platform_name = "AMD Accelerated Parallel Processing";
  q.platform_version = "OpenCL 2.1 AMD-APP (3614.0)";
  q.version = "OpenCL 2.0 ";
  q.driver_version = "3614.0 (HSA1.1,LC)";
  q.opencl_c_version = "OpenCL C 2.0 ";
  q.extensions = "cl_khr_fp64 " + std::string(kAtomics32) + kAtomics64 +
                 "cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_fp16 "
                 "cl_khr_gl_sharing cl_amd_device_attribute_query cl_amd_media_ops "
                 "cl_amd_media_ops2 cl_khr_image2d_from_buffer cl_khr_subgroups "
                 "cl_khr_depth_images cl_amd_copy_buffer_p2p cl_amd_assembly_program";
  q.max_work_group_size = 256;
  q.max_work_item_sizes = {1024, 1024, 1024};
  q.max_mem_alloc_size = memory / 100 * 85;
  q.local_mem_size = 64 * kKiB;
  q.global_cache_size = 16 * kKiB;
  q.base_align_bits = 2048;
  q.preferred_width_half = q.preferred_width_double = 1;
  q.double_config = kAllDouble;
  q.half_config = kHalf;
  q.svm_capabilities = kSvmCoarse | kSvmFine;
  q.sub_group_sizes = {major >= 10 ? 32u : 64u};
  q.amd_board_name = std::move(board);
  q.amd_gfxip_major = major;
  q.amd_gfxip_minor = minor;
  return q;
}

DeviceQueries intel(std::string name, std::uint32_t ip, std::uint32_t units, std::uint32_t mhz,
                    std::uint64_t memory, bool integrated, bool fp64) {
  auto q = gpu(std::move(name), units, mhz, memory);
  q.vendor = "Intel(R) Corporation";
  q.vendor_id = 0x8086;
  q.platform_name = "Intel(R) OpenCL Graphics";
  q.platform_version = "OpenCL 3.0 ";
  q.version = "OpenCL 3.0 NEO ";
  q.driver_version = "24.39.31294.12";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions = "cl_khr_byte_addressable_store cl_khr_device_uuid cl_khr_fp16 " +
                 std::string(kAtomics32) + kAtomics64 +
                 "cl_khr_icd cl_intel_command_queue_families cl_intel_subgroups "
                 "cl_intel_required_subgroup_size cl_intel_subgroups_short cl_khr_spir "
                 "cl_intel_accelerator cl_khr_subgroups cl_khr_il_program "
                 "cl_intel_device_attribute_query cl_intel_unified_shared_memory";
  if (fp64) q.extensions += " cl_khr_fp64";
  q.double_config = fp64 ? kAllDouble : 0;
  q.half_config = kHalf;
  q.host_unified_memory = integrated;
  q.max_work_group_size = ip >> 22 < 12 ? 256 : 512;
  q.max_work_item_sizes = {q.max_work_group_size, q.max_work_group_size, q.max_work_group_size};
  q.max_mem_alloc_size = std::min<std::uint64_t>(memory, 4 * kGiB - 4 * kKiB);
  q.local_mem_size = 64 * kKiB;
  q.preferred_width_half = 8;
  q.max_sub_groups = static_cast<std::uint32_t>(q.max_work_group_size / 8);
  q.sub_group_sizes = {8, 16, 32};
  q.svm_capabilities = kSvmCoarse | kSvmFine | kSvmAtomics;
  q.intel_ip_version = ip;
  return q;
}

DeviceQueries apple_m1() {
  auto q = gpu("Apple M1", 8, 1000, 11453 * kMiB);
  q.vendor = "Apple";
  q.vendor_id = 0x1027f00;
  q.platform_name = "Apple";
  q.platform_version = "OpenCL 1.2 (Apr 19 2024 21:36:31)";
  q.version = "OpenCL 1.2 ";
  q.driver_version = "1.2 1.0";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions =
      "cl_APPLE_SetMemObjectDestructor cl_APPLE_ContextLoggingFunctions "
      "cl_APPLE_clut cl_APPLE_query_kernel_names cl_APPLE_gl_sharing "
      "cl_khr_gl_event cl_khr_byte_addressable_store " +
      std::string(kAtomics32) +
      "cl_khr_3d_image_writes cl_khr_image2d_from_buffer cl_khr_depth_images";
  q.host_unified_memory = true;
  q.max_work_group_size = 256;
  q.max_work_item_sizes = {256, 256, 256};
  q.local_mem_size = 32 * kKiB;
  q.max_mem_alloc_size = 2147 * kMiB;
  q.base_align_bits = 32768;
  return q;
}

DeviceQueries mali_g78() {
  auto q = gpu("Mali-G78 r0p1", 20, 848, 7590 * kMiB);
  q.vendor = "ARM";
  q.vendor_id = 0x90910010;
  q.platform_name = "ARM Platform";
  q.platform_version = "OpenCL 3.0 v1.r38p1-01eac0";
  q.version = "OpenCL 3.0 v1.r38p1-01eac0";
  q.driver_version = "3.0";
  q.opencl_c_version = "OpenCL C 3.0 v1.r38p1-01eac0";
  q.extensions = std::string(kAtomics32) + kAtomics64 +
                 "cl_khr_byte_addressable_store cl_khr_3d_image_writes cl_khr_fp16 cl_khr_icd "
                 "cl_khr_subgroups cl_arm_core_id cl_arm_printf cl_arm_import_memory "
                 "cl_arm_integer_dot_product_int8 cl_arm_shared_virtual_memory";
  q.half_config = kHalf;
  q.host_unified_memory = true;
  q.local_mem_is_real = false;  // Mali keeps local memory in ordinary cached memory
  q.local_mem_size = 32 * kKiB;
  q.max_work_group_size = 1024;
  q.max_work_item_sizes = {1024, 1024, 1024};
  q.max_mem_alloc_size = q.global_mem_size;
  q.preferred_width_float = q.native_width_float = 1;
  q.preferred_width_half = 2;
  q.max_sub_groups = 64;
  q.svm_capabilities = kSvmCoarse | kSvmFine | kSvmAtomics;
  return q;
}

DeviceQueries adreno_740() {
  auto q = gpu("QUALCOMM Adreno(TM)", 6, 680, 5626 * kMiB);
  q.vendor = "QUALCOMM";
  q.vendor_id = 0xbf4d3c4b;
  q.platform_name = "QUALCOMM Snapdragon(TM)";
  q.platform_version = "OpenCL 3.0 QUALCOMM build: commit unknown Compiler E031.41.03.36";
  q.version = "OpenCL 3.0 Adreno(TM) 740";
  q.driver_version = "OpenCL 3.0 QUALCOMM build: commit unknown Compiler E031.41.03.36";
  q.opencl_c_version = "OpenCL C 3.0 Adreno(TM) 740";
  q.extensions = "cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_fp16 " +
                 std::string(kAtomics32) +
                 "cl_khr_image2d_from_buffer cl_khr_subgroups cl_qcom_perf_hint "
                 "cl_qcom_ext_host_ptr cl_qcom_priority_hint cl_qcom_subgroup_shuffle";
  q.half_config = kHalf;
  q.host_unified_memory = true;
  q.local_mem_size = 32 * kKiB;
  q.max_work_group_size = 1024;
  q.max_work_item_sizes = {1024, 1024, 1024};
  q.max_mem_alloc_size = kGiB;
  q.max_sub_groups = 16;
  q.svm_capabilities = kSvmCoarse | kSvmFine | kSvmAtomics;
  return q;
}

DeviceQueries cpu(std::string name, std::string vendor, std::uint32_t threads, std::uint32_t mhz,
                  std::uint32_t width, std::uint64_t memory) {
  auto q = gpu(std::move(name), threads, mhz, memory);
  q.type_bits = kCpu;
  q.vendor = std::move(vendor);
  q.host_unified_memory = true;
  q.local_mem_is_real = false;
  q.preferred_width_float = q.native_width_float = width;
  q.preferred_width_double = width / 2;
  q.double_config = kAllDouble;
  return q;
}

DeviceQueries pocl_epyc() {
  auto q = cpu("pthread-znver4-AMD EPYC 9R14 96-Core Processor", "AuthenticAMD", 96, 3700, 16,
               384 * kGiB);
  q.vendor_id = 0x1022;
  q.platform_name = "Portable Computing Language";
  q.platform_version = "OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, SPIR, LLVM 15.0.6";
  q.version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-znver4";
  q.driver_version = "3.1+debian";
  q.opencl_c_version = "OpenCL C 1.2 PoCL";
  q.extensions = "cl_khr_byte_addressable_store " + std::string(kAtomics32) +
                 "cl_khr_3d_image_writes cl_khr_spir cl_khr_fp64 " + kAtomics64;
  q.max_work_group_size = 4096;
  q.max_work_item_sizes = {4096, 4096, 4096};
  q.local_mem_size = 1024 * kKiB;
  q.global_cache_size = 32 * kMiB;
  q.svm_capabilities = kSvmCoarse | kSvmFine | kSvmAtomics;
  return q;
}

// As PyPI's wheel has it. Its LLVM 14 takes the processor for a Zen 3 and its vectors for
// AVX-512's.
DeviceQueries pocl_3_0_epyc() {
  auto q = pocl_epyc();
  q.name = "pthread-AMD EPYC 9R14 96-Core Processor";
  q.platform_version =
      "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF, DISTRO, POCL_DEBUG";
  q.version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3";
  q.driver_version = "3.0-rc2";
  return q;
}

DeviceQueries intel_cpu_runtime() {
  auto q = cpu("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "Intel(R) Corporation", 160, 2300,
               16, 512 * kGiB);
  q.vendor_id = 0x8086;
  q.platform_name = "Intel(R) OpenCL";
  q.platform_version = "OpenCL 3.0 LINUX";
  q.version = "OpenCL 3.0 (Build 0)";
  q.driver_version = "2024.18.7.0.11_160000";
  q.opencl_c_version = "OpenCL C 3.0 ";
  q.extensions = "cl_khr_spirv_linkonce_odr cl_khr_fp64 cl_khr_fp16 cl_khr_subgroups " +
                 std::string(kAtomics32) + kAtomics64 + "cl_intel_unified_shared_memory";
  q.max_work_group_size = 8192;
  q.max_work_item_sizes = {8192, 8192, 8192};
  q.local_mem_size = 256 * kKiB;
  q.max_sub_groups = 2048;
  q.svm_capabilities = kSvmCoarse | kSvmFine | kSvmSystem | kSvmAtomics;
  return q;
}

DeviceQueries llvmpipe() {
  auto q = cpu("llvmpipe (LLVM 17.0.6, 256 bits)", "Mesa", 16, 0, 4, 31 * kGiB);
  q.platform_name = "rusticl";
  q.platform_version = "OpenCL 3.0 ";
  q.version = "OpenCL 3.0 ";
  q.driver_version = "24.0.5";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions = "cl_khr_byte_addressable_store cl_khr_create_command_queue cl_khr_fp64 " +
                 std::string(kAtomics32) + "cl_khr_il_program cl_khr_icd";
  q.max_work_group_size = 1024;
  q.max_work_item_sizes = {1024, 1024, 1024};
  q.local_mem_size = 32 * kKiB;
  q.svm_capabilities = kSvmCoarse;
  return q;
}

DeviceQueries oclgrind() {
  auto q = gpu("Oclgrind Simulator", 1, 1, 128 * kMiB);
  q.type_bits = kCpu | kGpu | kAccelerator | kDefault;
  q.vendor = "University of Bristol";
  q.platform_name = "Oclgrind";
  q.platform_version = "OpenCL 1.2 (Oclgrind 21.10)";
  q.version = "OpenCL 1.2 (Oclgrind 21.10)";
  q.driver_version = "Oclgrind 21.10";
  q.opencl_c_version = "OpenCL C 1.2 (Oclgrind 21.10)";
  q.extensions = "cl_khr_spir cl_khr_3d_image_writes cl_khr_fp64 cl_khr_byte_addressable_store " +
                 std::string(kAtomics32) + kAtomics64;
  q.host_unified_memory = true;
  q.max_work_group_size = 1024;
  q.max_work_item_sizes = {1024, 1024, 1024};
  q.local_mem_size = 32 * kKiB;
  q.double_config = kAllDouble;
  return q;
}

// Embedded GPUs with little local memory exist; this is VideoCore VI of a Raspberry Pi 4.
DeviceQueries videocore() {
  auto q = gpu("VideoCore VI", 1, 500, 3 * kGiB);
  q.vendor = "Broadcom";
  q.platform_name = "OpenCL for the Raspberry Pi VideoCore VI GPU";
  q.platform_version = q.version = "OpenCL 1.2 VC6CL";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions = kAtomics32;
  q.host_unified_memory = true;
  q.max_work_group_size = 12;
  q.max_work_item_sizes = {12, 12, 12};
  q.local_mem_size = 4 * kKiB;
  q.local_mem_is_real = false;
  q.preferred_width_float = q.native_width_float = 16;
  return q;
}

// A GPU of a maker that netcl knows nothing about.
DeviceQueries powervr() {
  auto q = gpu("PowerVR B-Series BXM-8-256", 1, 800, 2 * kGiB);
  q.vendor = "Imagination Technologies";
  q.platform_name = "PowerVR";
  q.platform_version = q.version = "OpenCL 3.0 1.17@6210866";
  q.opencl_c_version = "OpenCL C 1.2 ";
  q.extensions = std::string(kAtomics32) + "cl_khr_byte_addressable_store cl_img_fp16_storage";
  q.host_unified_memory = true;
  q.max_work_group_size = 512;
  q.max_work_item_sizes = {512, 512, 512};
  q.local_mem_size = 32 * kKiB;
  return q;
}

// GMDID layout of Intel's IP version.
constexpr std::uint32_t ip(std::uint32_t architecture, std::uint32_t release) {
  return architecture << 22 | release << 14;
}

std::vector<RecordedDevice> make_records() {
  return {
      {"gtx_980", nvidia("NVIDIA GeForce GTX 980", 5, 2, 16, 1216, 4 * kGiB), 4.98, 224},
      {"gtx_1080", nvidia("NVIDIA GeForce GTX 1080", 6, 1, 20, 1733, 8 * kGiB), 8.87, 320},
      {"v100", nvidia("Tesla V100-SXM2-16GB", 7, 0, 80, 1530, 16 * kGiB), 15.7, 900},
      {"rtx_2080_ti", nvidia("NVIDIA GeForce RTX 2080 Ti", 7, 5, 68, 1545, 11 * kGiB), 13.4, 616},
      {"a100", nvidia("NVIDIA A100-SXM4-40GB", 8, 0, 108, 1410, 40 * kGiB), 19.5, 1555},
      {"rtx_3090", nvidia("NVIDIA GeForce RTX 3090", 8, 6, 82, 1695, 24 * kGiB), 35.6, 936},
      {"rtx_4090", nvidia("NVIDIA GeForce RTX 4090", 8, 9, 128, 2520, 24 * kGiB), 82.6, 1008},
      {"h100", nvidia("NVIDIA H100 80GB HBM3", 9, 0, 132, 1980, 80 * kGiB), 66.9, 3350},
      {"rtx_5090", nvidia("NVIDIA GeForce RTX 5090", 12, 0, 170, 2407, 32 * kGiB), 104.8, 1792},
      {"rx_580", amd("gfx803", "Radeon RX 580 Series", 8, 0, 36, 1340, 8 * kGiB), 6.17, 256},
      {"vega_64", amd("gfx900:xnack-", "Radeon RX Vega 64", 9, 0, 64, 1546, 8 * kGiB), 12.7, 484},
      {"mi210", amd("gfx90a:sramecc+:xnack-", "AMD Instinct MI210", 9, 0, 104, 1700, 64 * kGiB),
       22.6, 1638},
      {"mi300x", amd("gfx942:sramecc+:xnack-", "AMD Instinct MI300X", 9, 4, 304, 2100, 192 * kGiB),
       163.4, 5300},
      {"rx_5700_xt", amd("gfx1010:xnack-", "AMD Radeon RX 5700 XT", 10, 1, 20, 1905, 8 * kGiB),
       9.75, 448},
      {"rx_6800", amd("gfx1030", "AMD Radeon RX 6800", 10, 3, 30, 2105, 16 * kGiB), 16.2, 512},
      {"rx_7900_xtx", amd("gfx1100", "AMD Radeon RX 7900 XTX", 11, 0, 48, 2500, 24 * kGiB), 61.4,
       960},
      {"rx_9070_xt", amd("gfx1201", "AMD Radeon RX 9070 XT", 12, 0, 32, 2970, 16 * kGiB), 48.7,
       640},
      {"uhd_630", intel("Intel(R) UHD Graphics 630", ip(9, 2) | 9, 24, 1150, 25 * kGiB, true, true),
       0.441, 41.6},
      {"iris_xe",
       intel("Intel(R) Iris(R) Xe Graphics", ip(12, 0), 96, 1350, 12 * kGiB, true, false), 2.07,
       68},
      {"arc_a770",
       intel("Intel(R) Arc(TM) A770 Graphics", ip(12, 55) | 8, 512, 2400, 16 * kGiB, false, false),
       19.7, 560},
      {"max_1550",
       intel("Intel(R) Data Center GPU Max 1550", ip(12, 60) | 7, 1024, 1600, 64 * kGiB, false,
             true),
       52.4, 3277},
      {"b580",
       intel("Intel(R) Arc(TM) B580 Graphics", ip(20, 1), 160, 2850, 12 * kGiB, false, true), 14.6,
       456},
      {"apple_m1", apple_m1(), 2.6, 68},
      {"mali_g78", mali_g78()},
      {"adreno_740", adreno_740()},
      {"pocl_epyc", pocl_epyc()},
      {"pocl_3_0_epyc", pocl_3_0_epyc()},
      {"intel_cpu", intel_cpu_runtime()},
      {"llvmpipe", llvmpipe()},
      {"oclgrind", oclgrind()},
      {"videocore", videocore()},
      {"powervr", powervr()},
  };
}

}  // namespace

const std::vector<RecordedDevice>& recorded_devices() {
  static const auto records = make_records();
  return records;
}

const RecordedDevice& recorded(std::string_view label) {
  for (const auto& record : recorded_devices())
    if (record.label == label) return record;
  throw std::out_of_range("no recorded device " + std::string(label));
}

}  // namespace netcl::test
