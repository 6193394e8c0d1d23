// Profiles of recorded devices and of the devices of this machine.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "device/driver_limits.h"
#include "device/host.h"
#include "netcl/device.h"
#include "support/recorded_devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::recorded;
using test::recorded_devices;
using test::recorded_profile;
using test::ScopedEnv;
using F = GPUFamily;

struct Expected {
  const char* label;
  GPUFamily family;
  const char* type;
  bool integrated;
  const char* strategy;
};

// Strategy: subgroups or half arithmetic or a vendor of the list -> optimized.
constexpr Expected kExpected[] = {
    {"gtx_980", F::nvidia_maxwell, "gpu", false, "optimized"},
    {"gtx_1080", F::nvidia_pascal, "gpu", false, "optimized"},
    {"v100", F::nvidia_volta, "gpu", false, "optimized"},
    {"rtx_2080_ti", F::nvidia_turing, "gpu", false, "optimized"},
    {"a100", F::nvidia_ampere, "gpu", false, "optimized"},
    {"rtx_3090", F::nvidia_ampere, "gpu", false, "optimized"},
    {"rtx_4090", F::nvidia_ada, "gpu", false, "optimized"},
    {"h100", F::nvidia_hopper, "gpu", false, "optimized"},
    {"rtx_5090", F::nvidia_blackwell, "gpu", false, "optimized"},
    {"rx_580", F::amd_gcn, "gpu", false, "optimized"},
    {"vega_64", F::amd_vega, "gpu", false, "optimized"},
    {"mi210", F::amd_cdna, "gpu", false, "optimized"},
    {"mi300x", F::amd_cdna, "gpu", false, "optimized"},
    {"rx_5700_xt", F::amd_rdna, "gpu", false, "optimized"},
    {"rx_6800", F::amd_rdna2, "gpu", false, "optimized"},
    {"rx_7900_xtx", F::amd_rdna3, "gpu", false, "optimized"},
    {"rx_9070_xt", F::amd_rdna4, "gpu", false, "optimized"},
    {"uhd_630", F::intel_gen, "gpu", true, "optimized"},
    {"iris_xe", F::intel_xe, "gpu", true, "optimized"},
    {"arc_a770", F::intel_arc, "gpu", false, "optimized"},
    {"max_1550", F::intel_xe_hpc, "gpu", false, "optimized"},
    {"b580", F::intel_xe2, "gpu", false, "optimized"},
    {"apple_m1", F::apple, "gpu", true, "portable"},
    {"mali_g78", F::arm_mali, "gpu", true, "optimized"},
    {"adreno_740", F::qualcomm_adreno, "gpu", true, "optimized"},
    {"pocl_epyc", F::cpu, "cpu", true, "portable"},
    {"pocl_3_0_epyc", F::cpu, "cpu", true, "portable"},
    {"intel_cpu", F::cpu, "cpu", true, "portable"},
    {"llvmpipe", F::cpu, "cpu", true, "portable"},
    {"oclgrind", F::unknown, "gpu", true, "portable"},
    {"videocore", F::unknown, "gpu", true, "portable"},
    {"powervr", F::unknown, "gpu", true, "portable"},
};

TEST(Profile, RecordedDevicesAreRecognised) {
  const ScopedEnv strategy("NETCL_KERNEL_STRATEGY", nullptr);
  ASSERT_EQ(std::size(kExpected), recorded_devices().size());
  for (const auto& expected : kExpected) {
    SCOPED_TRACE(expected.label);
    const auto profile = recorded_profile(expected.label);
    EXPECT_EQ(name_of(profile.gpu_family), name_of(expected.family));
    EXPECT_EQ(profile.device_type, expected.type);
    EXPECT_EQ(profile.is_cpu, std::string(expected.type) == "cpu");
    EXPECT_EQ(profile.is_integrated, expected.integrated);
    EXPECT_EQ(kernel_strategy(profile), expected.strategy);
  }
}

TEST(Profile, NamesDecideOnlyWithoutNumbers) {
  for (const auto& expected : kExpected) {
    SCOPED_TRACE(expected.label);
    auto queries = recorded(expected.label).queries;
    queries.nv_compute_major = queries.nv_compute_minor = 0;
    queries.amd_gfxip_major = queries.amd_gfxip_minor = 0;
    queries.intel_ip_version = 0;
    // Maxwell's and later names are in the table, so nothing may change.
    EXPECT_EQ(name_of(make_profile(queries).gpu_family), name_of(expected.family));
  }
}

TEST(Profile, NumbersBeatNames) {
  auto queries = recorded("rtx_4090").queries;
  queries.name = "NVIDIA GeForce GTX 1080";
  EXPECT_EQ(make_profile(queries).gpu_family, F::nvidia_ada);
  queries = recorded("uhd_630").queries;
  queries.name = "Intel(R) Arc(TM) A770 Graphics";
  EXPECT_EQ(make_profile(queries).gpu_family, F::intel_gen);
}

TEST(Profile, MesaNamesTheChipsMakerInTheDeviceName) {
  auto queries = recorded("powervr").queries;
  queries.vendor = "Mesa";
  queries.name = "AMD Radeon RX 6800 (radeonsi, navi21, LLVM 15.0.7, DRM 3.49)";
  EXPECT_EQ(make_profile(queries).gpu_family, F::amd_rdna2);
  queries.name = "Mesa Intel(R) Iris(R) Xe Graphics (TGL GT2)";
  EXPECT_EQ(make_profile(queries).gpu_family, F::intel_xe);
  queries.name = "Mali-G52 r1 (Panfrost)";
  EXPECT_EQ(make_profile(queries).gpu_family, F::arm_mali);
}

TEST(Profile, AmdBoardNameIsTheLastResort) {
  auto queries = recorded("rx_580").queries;
  queries.amd_gfxip_major = 0;
  queries.name = "Capeverde";
  queries.amd_board_name = "AMD Radeon RX 7600";
  EXPECT_EQ(make_profile(queries).gpu_family, F::amd_rdna3);
  queries.amd_board_name.clear();
  EXPECT_EQ(make_profile(queries).gpu_family, F::amd_other);
}

// Looking for "cpu" in names would make an AMD GPU of an EPYC.
TEST(Profile, CpuIsDecidedByTypeBitsAlone) {
  auto queries = recorded("rtx_4090").queries;
  queries.type_bits = 2;
  const auto cpu = make_profile(queries);
  EXPECT_TRUE(cpu.is_cpu);
  EXPECT_TRUE(cpu.is_integrated);
  EXPECT_EQ(cpu.gpu_family, F::cpu);
  queries = recorded("pocl_epyc").queries;
  queries.name = "cpu";
  queries.type_bits = 4;
  EXPECT_FALSE(make_profile(queries).is_cpu);
}

TEST(Profile, DeviceTypeNamesFollowTheBits) {
  EXPECT_EQ(device_type_name(2), "cpu");
  EXPECT_EQ(device_type_name(2 | 1), "cpu");
  EXPECT_EQ(device_type_name(4), "gpu");
  EXPECT_EQ(device_type_name(8), "accel");
  EXPECT_EQ(device_type_name(2 | 4 | 8), "gpu");
  EXPECT_EQ(device_type_name(2 | 8), "accel");
  EXPECT_EQ(device_type_name(16), "other");
  EXPECT_EQ(device_type_name(0), "other");
}

TEST(Profile, HalfArithmeticNeedsTheWholeWord) {
  auto queries = recorded("powervr").queries;
  ASSERT_NE(queries.extensions.find("fp16"), std::string::npos);
  EXPECT_FALSE(make_profile(queries).has_fp16);
  for (const char* extensions :
       {"cl_khr_fp16_emulated", "xcl_khr_fp16", "cl_intel_khr_fp16 cl_khr_fp161"}) {
    queries.extensions = extensions;
    EXPECT_FALSE(make_profile(queries).has_fp16) << extensions;
  }
  for (const char* extensions :
       {"cl_khr_fp16", "a cl_khr_fp16", "cl_khr_fp16 b", "a cl_khr_fp16 b"}) {
    queries.extensions = extensions;
    const auto profile = make_profile(queries);
    EXPECT_TRUE(profile.has_fp16) << extensions;
    EXPECT_TRUE(profile.supports_fp16) << extensions;
  }
  EXPECT_FALSE(make_profile(queries).has_extension(""));
}

TEST(Profile, FeaturesFollowTheQueries) {
  const auto turing = recorded_profile("rtx_2080_ti");
  EXPECT_TRUE(turing.has_fp64);
  EXPECT_FALSE(turing.has_fp16);
  EXPECT_FALSE(turing.has_subgroups);
  EXPECT_TRUE(turing.fast_atomics);
  EXPECT_TRUE(turing.has_local_atomics && turing.has_global_atomics);
  EXPECT_TRUE(turing.has_coarse_svm);
  EXPECT_FALSE(turing.has_fine_grain_svm);
  EXPECT_TRUE(turing.local_mem_is_real);
  EXPECT_FALSE(turing.tiny_local_mem);
  EXPECT_EQ(turing.base_align_bytes, 512u);
  EXPECT_EQ(turing.opencl_major, 3);
  EXPECT_EQ(turing.opencl_minor, 0);
  EXPECT_EQ(turing.sub_group_sizes, std::vector<std::size_t>{32});

  EXPECT_FALSE(recorded_profile("arc_a770").has_fp64);
  EXPECT_TRUE(recorded_profile("arc_a770").has_subgroups);
  EXPECT_TRUE(recorded_profile("rx_6800").has_subgroups);
  EXPECT_TRUE(recorded_profile("rx_6800").has_fine_grain_svm);
  EXPECT_FALSE(recorded_profile("apple_m1").fast_atomics);
  EXPECT_EQ(recorded_profile("apple_m1").opencl_minor, 2);
  EXPECT_TRUE(recorded_profile("videocore").tiny_local_mem);
  EXPECT_FALSE(recorded_profile("mali_g78").use_local_memory);
  EXPECT_FALSE(recorded_profile("pocl_epyc").use_local_memory);
}

// Its compiler ends the process at vectors of 64 bytes; PoCL 3.1 has an LLVM that knows better.
TEST(Profile, PoclBefore31HasHalfTheVectorsOnAmdProcessorsWithAvx512) {
  const auto profile = recorded_profile("pocl_3_0_epyc");
  EXPECT_EQ(detail::max_vector_bytes(profile), 32);
  EXPECT_EQ(profile.native_vector_width_float, 8u);
  EXPECT_EQ(profile.preferred_vector_width_float, 8u);
  EXPECT_EQ(recorded_profile("pocl_epyc").native_vector_width_float, 16u);
  for (const auto& record : recorded_devices())
    if (record.label != "pocl_3_0_epyc")
      EXPECT_EQ(detail::max_vector_bytes(make_profile(record.queries)), 128) << record.label;
}

TEST(Profile, VectorsAreLimitedByVersionAndVendor) {
  const auto bytes = [](const char* version, const char* vendor) {
    auto queries = recorded("pocl_3_0_epyc").queries;
    queries.driver_version = version;
    queries.vendor = vendor;
    return detail::max_vector_bytes(make_profile(queries));
  };
  for (const char* version : {"1.8", "2.2", "3.0", "3.0-rc2", "3.0+debian", ""})
    EXPECT_EQ(bytes(version, "AuthenticAMD"), 32) << version;
  for (const char* version : {"3.1", "3.1-rc1", "3.10", "4.0", "6.0-5+b1", "10.0"})
    EXPECT_EQ(bytes(version, "AuthenticAMD"), 128) << version;
  EXPECT_EQ(bytes("3.0", "GenuineIntel"), 128);
}

TEST(Profile, StartingPointsRespectTheLimits) {
  for (const auto& record : recorded_devices()) {
    SCOPED_TRACE(record.label);
    const auto p = make_profile(record.queries);
    const auto [x, y] = p.optimal_wg_size_2d;
    EXPECT_GE(p.optimal_wg_size_1d, 1);
    EXPECT_LE(static_cast<std::size_t>(p.optimal_wg_size_1d), p.max_work_group_size);
    EXPECT_GE(x, 1);
    EXPECT_GE(y, 1);
    EXPECT_LE(static_cast<std::size_t>(x) * static_cast<std::size_t>(y), p.max_work_group_size);
    EXPECT_GE(p.optimal_tile_m, 8);
    if (p.use_local_memory) {
      const auto bytes = 4 * (p.optimal_tile_m + p.optimal_tile_n) * p.optimal_tile_k;
      EXPECT_LE(static_cast<std::uint64_t>(bytes), p.local_mem_size / 2);
    }
  }
}

TEST(Profile, ADeviceThatAnswersNothingHasAUsableProfile) {
  const auto p = make_profile(DeviceQueries{});
  EXPECT_EQ(p.device_type, "other");
  EXPECT_EQ(p.gpu_family, F::unknown);
  EXPECT_EQ(p.max_work_group_size, 1u);
  EXPECT_EQ(p.optimal_wg_size_1d, 1);
  EXPECT_EQ(p.optimal_wg_size_2d, std::make_pair(1, 1));
  EXPECT_EQ(p.base_align_bytes, 1u);
  EXPECT_EQ(p.estimated_flops, 0);
}

TEST(Profile, SpeedEstimatesAreOfTheRightOrder) {
  int compared = 0;
  for (const auto& record : recorded_devices()) {
    if (record.published_tflops == 0) continue;
    SCOPED_TRACE(record.label);
    const auto p = make_profile(record.queries);
    const double flops = p.estimated_flops / (record.published_tflops * 1e12);
    const double bytes = p.memory_bandwidth / (record.published_gbs * 1e9);
    EXPECT_GT(flops, 0.49);
    EXPECT_LT(flops, 1.5);
    EXPECT_GT(bytes, 0.5);
    EXPECT_LT(bytes, 2.0);
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

TEST(KernelStrategy, TheEnvironmentWinsAtEachCall) {
  const auto cpu = recorded_profile("pocl_epyc"), gpu = recorded_profile("rtx_4090");
  {
    const ScopedEnv forced("NETCL_KERNEL_STRATEGY", "optimized");
    EXPECT_EQ(kernel_strategy(cpu), "optimized");
  }
  {
    const ScopedEnv forced("NETCL_KERNEL_STRATEGY", "portable");
    EXPECT_EQ(kernel_strategy(gpu), "portable");
  }
  const ScopedEnv automatic("NETCL_KERNEL_STRATEGY", "auto");
  EXPECT_EQ(kernel_strategy(cpu), "portable");
  EXPECT_EQ(kernel_strategy(gpu), "optimized");
}

TEST(KernelStrategy, AnUnknownValueIsOneWarningAndAuto) {
  const ScopedEnv wrong("NETCL_KERNEL_STRATEGY", "fastest");
  testing::internal::CaptureStderr();
  EXPECT_EQ(kernel_strategy(recorded_profile("rtx_4090")), "optimized");
  EXPECT_EQ(kernel_strategy(recorded_profile("pocl_epyc")), "portable");
  const auto text = testing::internal::GetCapturedStderr();
  const auto first = text.find("fastest");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("fastest", first + 1), std::string::npos);
}

// Real vendor strings are longer than the name of the vendor, so equality is the wrong test.
TEST(KernelStrategy, RealVendorStringsCount) {
  const ScopedEnv automatic("NETCL_KERNEL_STRATEGY", nullptr);
  DeviceProfile profile;
  profile.device_type = "gpu";
  profile.local_mem_size = 48 * 1024;
  for (const char* vendor : {"NVIDIA Corporation", "Advanced Micro Devices, Inc.", "AMD"}) {
    profile.vendor = vendor;
    EXPECT_EQ(kernel_strategy(profile), "optimized") << vendor;
  }
  profile.vendor = "Lamda";
  EXPECT_EQ(kernel_strategy(profile), "portable");
  profile.vendor = "NVIDIA Corporation";
  profile.tiny_local_mem = true;
  EXPECT_EQ(kernel_strategy(profile), "portable");
}

TEST(Family, EveryFamilyHasItsOwnName) {
  std::set<std::string_view> names;
  const int last = static_cast<int>(F::qualcomm_adreno);
  for (int i = 0; i <= last; ++i) names.insert(name_of(static_cast<F>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last + 1));
  EXPECT_EQ(name_of(F::nvidia_ampere), "NVIDIA_AMPERE");
  EXPECT_EQ(name_of(F::amd_rdna3), "AMD_RDNA3");
  EXPECT_EQ(name_of(F::cpu), "CPU");
}

TEST(HostProfile, DescribesTheProcessor) {
  const auto& profile = device_profile(Device{});
  EXPECT_FALSE(profile.name.empty());
  EXPECT_EQ(profile.device_type, "cpu");
  EXPECT_EQ(profile.gpu_family, F::cpu);
  EXPECT_TRUE(profile.is_cpu);
  EXPECT_TRUE(profile.is_integrated);
  EXPECT_TRUE(profile.has_fp64);
  EXPECT_FALSE(profile.has_fp16);
  EXPECT_EQ(profile.compute_units, std::max(1u, std::thread::hardware_concurrency()));
  EXPECT_GT(profile.global_mem_size, 0u);
  EXPECT_EQ(&profile, &device_profile(Device{}));
}

TEST(HostProfile, ReadsTheFirstProcessorOfCpuinfo) {
  const auto info = detail::parse_cpuinfo(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9R14\ncpu MHz\t\t: "
      "3699.5\nflags\t\t: fpu avx2 avx512f\n\nprocessor\t: 1\nmodel name\t: other\n");
  EXPECT_EQ(info.model, "AMD EPYC 9R14");
  EXPECT_EQ(info.vendor, "AuthenticAMD");
  EXPECT_EQ(info.flags, "fpu avx2 avx512f");
  EXPECT_NEAR(info.mhz, 3699.5, 1e-9);
  EXPECT_TRUE(detail::parse_cpuinfo("").model.empty());
  EXPECT_TRUE(detail::parse_cpuinfo("no colon\n:\n\n").model.empty());
}

TEST(DeviceProfileCache, OneObjectPerDeviceFromEveryThread) {
  std::vector<Device> devices{Device{}};
  for (const auto& found : manager().discover()) devices.push_back(found.device);
  std::vector<std::vector<const ExtendedDeviceProfile*>> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : seen)
      threads.emplace_back([&mine, &devices] {
        for (const auto& device : devices) mine.push_back(&device_profile(device));
      });
  }
  for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
  for (std::size_t i = 0; i < devices.size(); ++i)
    EXPECT_EQ(*seen[0][i], make_profile(device_queries(devices[i]))) << seen[0][i]->name;
}

TEST(DeviceProfileCache, OpenClCpuDevicesAreCpus) {
  int cpus = 0;
  for (const auto& found : manager().discover()) {
    const auto& profile = device_profile(found.device);
    EXPECT_EQ(profile.device_type, found.device_type);
    EXPECT_EQ(profile.is_cpu, found.device_type == "cpu");
    if (!profile.is_cpu) continue;
    ++cpus;
    EXPECT_EQ(profile.gpu_family, F::cpu);
    EXPECT_TRUE(profile.is_integrated);
    EXPECT_GT(profile.compute_units, 0u);
    EXPECT_GE(profile.opencl_major, 1);
  }
  if (cpus == 0) GTEST_SKIP() << "no OpenCL CPU device here";
}

}  // namespace
}  // namespace netcl
