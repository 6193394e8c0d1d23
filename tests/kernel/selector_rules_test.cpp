// The built-in rules against recorded devices: what each device gets, that every rule is needed by
// some device, and that every configuration fits the device it is for.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "netcl/kernel_selector.h"
#include "support/recorded_devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::recorded_devices;
using test::recorded_profile;
using test::ScopedEnv;
using V = KernelVariant;

KernelProblem matmul(std::int64_t M, std::int64_t N, std::int64_t K, DType dtype = DType::float32) {
  return {"matmul", {Shape{M, K}, Shape{K, N}}, dtype, {}};
}

struct Conv {
  std::int64_t channels = 64, filters = 64, size = 56, filter = 3, stride = 1, padding = 1,
               dilation = 1, groups = 1, batch = 8;
  DType dtype = DType::float32;
};

KernelProblem conv2d(const Conv& c) {
  return {"conv2d",
          {Shape{c.batch, c.channels, c.size, c.size},
           Shape{c.filters, c.channels / c.groups, c.filter, c.filter}},
          c.dtype,
          {{"stride", c.stride},
           {"padding", c.padding},
           {"dilation", c.dilation},
           {"groups", c.groups}}};
}

KernelProblem elementwise(std::int64_t n) {
  return {"elementwise", {Shape{n}}, DType::float32, {}};
}
KernelProblem reduction(std::int64_t n) { return {"reduction", {Shape{n}}, DType::float32, {}}; }
KernelProblem reduction_rows(std::int64_t results, std::int64_t n) {
  return {"reduction", {Shape{results, n}}, DType::float32, {}};
}

KernelProblem rowwise(std::int64_t outer, std::int64_t n, std::int64_t inner) {
  return {"rowwise", {Shape{outer, n, inner}}, DType::float32, {}};
}

KernelProblem batchnorm(bool training, bool fuse_relu) {
  return {"batchnorm",
          {Shape{8, 64, 56, 56}},
          DType::float32,
          {{"training", training}, {"fuse_relu", fuse_relu}}};
}

std::vector<KernelProblem> all_problems() {
  std::vector<KernelProblem> problems{matmul(4, 4, 4),
                                      matmul(8, 8, 100000),
                                      matmul(1, 1024, 1024),
                                      matmul(1024, 1, 1024),
                                      matmul(128, 128, 128),
                                      matmul(1024, 1024, 1024),
                                      matmul(1024, 1023, 1024),
                                      matmul(1024, 1024, 1024, DType::float64),
                                      matmul(0, 8, 8),
                                      matmul(64, 64, 0),
                                      elementwise(0),
                                      elementwise(1023),
                                      elementwise(1025),
                                      elementwise(1 << 20),
                                      reduction(0),
                                      reduction(255),
                                      reduction(256),
                                      reduction(65535),
                                      reduction(1 << 20),
                                      reduction_rows(10000, 8),
                                      rowwise(128, 1000, 1),
                                      rowwise(128, 8, 1),
                                      rowwise(128, 1000, 64),
                                      batchnorm(false, true),
                                      batchnorm(true, true),
                                      batchnorm(false, false)};
  for (const Conv& conv :
       {Conv{}, Conv{.stride = 2}, Conv{.channels = 3}, Conv{.filter = 1, .padding = 0},
        Conv{.filter = 1}, Conv{.filter = 5, .padding = 2}, Conv{.padding = 2, .dilation = 2},
        Conv{.groups = 64}, Conv{.channels = 64, .filters = 64, .groups = 16}, Conv{.groups = 2},
        Conv{.size = 8}, Conv{.stride = 4}, Conv{.dtype = DType::int8}, Conv{.batch = 0},
        Conv{.batch = 4096, .dtype = DType::float16}})
    problems.push_back(conv2d(conv));
  problems.push_back({"conv2d", {Shape{8, 64, 56, 56}}, DType::float32, {}});
  problems.push_back({"matmul", {}, DType::float32, {}});
  return problems;
}

struct Expectation {
  const char* device;
  KernelProblem problem;
  V kernel;
};

TEST(SelectorRules, DevicesGetTheirKernels) {
  const ScopedEnv strategy("NETCL_KERNEL_STRATEGY", nullptr),
      winograd("NETCL_CONV_WINOGRAD", nullptr), local("NETCL_CONV_TILED_LOCAL", nullptr);
  const auto large = matmul(1024, 1024, 1024), middle = matmul(128, 128, 128);
  const auto c3x3 = conv2d({}), c1x1 = conv2d({.filter = 1, .padding = 0});
  const auto c5x5 = conv2d({.filter = 5, .padding = 2});
  const Expectation expectations[] = {
      // CPUs, whoever made them
      {"pocl_epyc", large, V::MATMUL_PACKED},
      {"pocl_epyc", middle, V::MATMUL_PACKED},
      {"pocl_epyc", matmul(4, 4, 4), V::MATMUL_NAIVE},
      {"pocl_epyc", matmul(1, 1024, 1024), V::MATMUL_GEMV},
      {"pocl_epyc", c3x3, V::CONV2D_WINOGRAD_PANELS},
      {"pocl_epyc", c5x5, V::CONV2D_PACKED},
      {"pocl_epyc", c1x1, V::CONV2D_PACKED},
      {"pocl_epyc", conv2d({.padding = 2, .dilation = 2}), V::CONV2D_IM2COL},
      {"pocl_epyc", conv2d({.stride = 4}), V::CONV2D_IM2COL},
      {"pocl_epyc", reduction(1 << 20), V::REDUCTION_CHUNKED},
      {"intel_cpu", large, V::MATMUL_PACKED},
      {"intel_cpu", c3x3, V::CONV2D_WINOGRAD_PANELS},
      {"llvmpipe", large, V::MATMUL_PACKED},
      // NVIDIA
      {"gtx_1080", large, V::MATMUL_REGISTER_TILED},
      {"rtx_2080_ti", large, V::MATMUL_REGISTER_TILED},
      {"rtx_5090", middle, V::MATMUL_TILED},
      {"a100", c3x3, V::CONV2D_WINOGRAD},
      {"a100", conv2d({.channels = 3}), V::CONV2D_IMPLICIT_GEMM},
      {"a100", conv2d({.stride = 2}), V::CONV2D_IMPLICIT_GEMM},
      {"a100", conv2d({.padding = 2, .dilation = 2}), V::CONV2D_IMPLICIT_GEMM},
      {"a100", c1x1, V::CONV2D_IMPLICIT_GEMM},
      {"a100", conv2d({.groups = 64}), V::CONV2D_DEPTHWISE},
      {"a100", conv2d({.groups = 16}), V::CONV2D_NAIVE},
      {"a100", conv2d({.groups = 2}), V::CONV2D_IMPLICIT_GEMM},
      {"a100", conv2d({.dtype = DType::int8}), V::CONV2D_NAIVE},
      {"a100", reduction(1 << 20), V::REDUCTION_WORKGROUP},
      {"a100", reduction(4096), V::REDUCTION_PARALLEL},
      {"a100", reduction(255), V::REDUCTION_SEQUENTIAL},
      {"a100", reduction_rows(10000, 8), V::REDUCTION_SEQUENTIAL},
      {"a100", reduction_rows(10000, 1000), V::REDUCTION_PARALLEL},
      {"a100", reduction_rows(2, 1 << 20), V::REDUCTION_WORKGROUP},
      {"pocl_epyc", reduction_rows(10000, 8), V::REDUCTION_CHUNKED},
      {"a100", elementwise(1024), V::ELEMENTWISE_VECTORIZED},
      {"a100", elementwise(1023), V::ELEMENTWISE_SCALAR},
      {"a100", batchnorm(false, true), V::BATCHNORM_FUSED},
      {"a100", batchnorm(true, true), V::BATCHNORM_NAIVE},
      {"a100", batchnorm(false, false), V::BATCHNORM_NAIVE},
      {"pocl_epyc", rowwise(128, 1000, 1), V::ROWWISE_ITEM},
      {"a100", rowwise(128, 1000, 1), V::ROWWISE_GROUP},
      {"a100", rowwise(128, 63, 1), V::ROWWISE_ITEM},
      {"a100", rowwise(128, 1000, 32), V::ROWWISE_ITEM},
      {"a100", rowwise(128, 1000, 31), V::ROWWISE_GROUP},
      // AMD
      {"rx_580", large, V::MATMUL_REGISTER_TILED},
      {"rx_6800", large, V::MATMUL_REGISTER_TILED},
      {"mi210", large, V::MATMUL_REGISTER_TILED},
      {"rx_7900_xtx", c3x3, V::CONV2D_WINOGRAD},
      // Intel: memory shared with the host changes the convolutions
      {"uhd_630", c3x3, V::CONV2D_TILED_LOCAL},
      {"iris_xe", c5x5, V::CONV2D_TILED_LOCAL},
      {"iris_xe", c1x1, V::CONV2D_IMPLICIT_GEMM},
      {"arc_a770", c3x3, V::CONV2D_WINOGRAD},
      {"b580", c5x5, V::CONV2D_IMPLICIT_GEMM},
      {"uhd_630", large, V::MATMUL_REGISTER_TILED},
      // Apple, mobile, unknown
      {"apple_m1", c3x3, V::CONV2D_WINOGRAD},
      {"apple_m1", large, V::MATMUL_REGISTER_TILED},
      {"mali_g78", large, V::MATMUL_VECTORIZED},
      {"mali_g78", middle, V::MATMUL_VECTORIZED},
      {"mali_g78", matmul(1024, 1023, 1024), V::MATMUL_NAIVE},
      {"mali_g78", c3x3, V::CONV2D_WINOGRAD},
      {"adreno_740", large, V::MATMUL_REGISTER_TILED},
      {"oclgrind", large, V::MATMUL_TILED},
      {"powervr", large, V::MATMUL_TILED},
      {"powervr", c3x3, V::CONV2D_IMPLICIT_GEMM},
      {"videocore", large, V::MATMUL_VECTORIZED},
      {"videocore", reduction(1 << 20), V::REDUCTION_CHUNKED},
  };
  const KernelSelector selector;
  for (const auto& [device, problem, kernel] : expectations) {
    const auto decision = selector.explain(problem, recorded_profile(device));
    EXPECT_EQ(decision.kernel, name_of(kernel)) << device << ": " << decision.to_string();
    EXPECT_EQ(selector.select(problem, recorded_profile(device)), decision.kernel);
  }
}

// The rules that were taken, over all recorded devices, problems and settings.
std::map<std::string, std::set<std::size_t>> fired_rules() {
  std::map<std::string, std::set<std::size_t>> fired;
  for (const char* local : {"0", "1"}) {
    const ScopedEnv tiled("NETCL_CONV_TILED_LOCAL", local);
    const KernelSelector selector;
    for (const auto& record : recorded_devices()) {
      const auto profile = make_profile(record.queries);
      for (const auto& problem : all_problems())
        fired[problem.op].insert(selector.explain(problem, profile).rule);
    }
  }
  // The last resort of reductions is for a device whose compiler refuses the others.
  KernelSelector broken;
  const auto profile = recorded_profile("a100");
  broken.strike_out(profile, "REDUCTION_WORKGROUP", "fired_rules");
  fired["reduction"].insert(broken.explain(reduction(1 << 20), profile).rule);
  return fired;
}

TEST(SelectorRules, EveryRuleIsTakenBySomeDevice) {
  const ScopedEnv strategy("NETCL_KERNEL_STRATEGY", nullptr),
      winograd("NETCL_CONV_WINOGRAD", nullptr);
  const auto fired = fired_rules();
  const KernelSelector selector;
  for (const auto& [op, rules] : selector.rules())
    for (std::size_t i = 0; i < rules.size(); ++i)
      EXPECT_TRUE(fired.at(op).contains(i)) << op << " rule " << i << ": " << rules[i].when;
}

TEST(SelectorRules, EveryVariantButCustomHasARule) {
  std::set<std::string> kernels;
  for (const auto& [op, rules] : KernelSelector().rules())
    for (const auto& rule : rules) kernels.insert(rule.kernel);
  EXPECT_EQ(kernels.size(), static_cast<std::size_t>(kKernelVariants - 1));
}

void expect_fits(const KernelConfig& c, const ExtendedDeviceProfile& p, DType dtype) {
  const auto [x, y] = c.local_size_2d;
  EXPECT_GE(c.local_size_1d, 1);
  EXPECT_LE(static_cast<std::size_t>(c.local_size_1d), p.max_work_group_size);
  EXPECT_GE(std::min(x, y), 1);
  EXPECT_LE(static_cast<std::size_t>(x * y), p.max_work_group_size);
  EXPECT_GE(c.work_per_thread, 1);
  EXPECT_TRUE(!c.use_local_memory || p.use_local_memory);
  EXPECT_FALSE(p.is_cpu && c.use_local_memory);
  const bool is_tiled = c.variant == V::MATMUL_TILED || c.variant == V::MATMUL_REGISTER_TILED;
  if (!is_tiled) return;
  EXPECT_EQ(x * c.work_per_thread, c.tile_n);
  EXPECT_EQ(y * c.work_per_thread, c.tile_m);
  const auto bytes = static_cast<std::size_t>((c.tile_m + c.tile_n) * c.tile_k) * size_of(dtype);
  EXPECT_LE(bytes, p.local_mem_size);
}

TEST(SelectorRules, EveryConfigurationFitsItsDevice) {
  const KernelSelector selector;
  for (const char* strategy : {"auto", "portable", "optimized"}) {
    const ScopedEnv forced("NETCL_KERNEL_STRATEGY", strategy);
    for (const auto& record : recorded_devices()) {
      const auto profile = make_profile(record.queries);
      for (const auto& problem : all_problems()) {
        const auto decision = KernelSelector().explain(problem, profile);
        SCOPED_TRACE(std::string(record.label) + " " + problem.op + ": " + decision.to_string());
        EXPECT_EQ(name_of(decision.config.variant), decision.kernel);
        expect_fits(decision.config, profile, problem.dtype);
      }
    }
  }
}

// Struck out one after the other, the rules lead to the last one and no earlier end.
TEST(SelectorRules, EachOpWorksUntilItsLastKernelIsGone) {
  for (const char* device : {"a100", "pocl_epyc", "pocl_3_0_epyc", "mali_g78", "videocore"}) {
    const auto profile = recorded_profile(device);
    for (const auto& problem : {matmul(512, 512, 512), conv2d({}), elementwise(4096),
                                reduction(1 << 20), batchnorm(false, true)}) {
      KernelSelector selector;
      std::set<std::string> kernels;
      for (const auto& rule : selector.rules(problem.op)) kernels.insert(rule.kernel);
      const auto last = selector.rules(problem.op).back().kernel;
      std::string kernel = selector.select(problem, profile);
      for (std::size_t i = 0; kernel != last && i <= kernels.size(); ++i) {
        selector.strike_out(profile, kernel, "each in turn");
        const auto next = selector.select(problem, profile);
        EXPECT_NE(next, kernel);
        kernel = next;
      }
      EXPECT_EQ(kernel, last) << device << " " << problem.op;
    }
  }
}

TEST(SelectorRules, RegisterTilesFollowTheVendor) {
  const auto config = [](const char* device) {
    return KernelSelector(recorded_profile(device)).select_matmul_kernel(2048, 2048, 2048);
  };
  for (const char* device : {"rtx_2080_ti", "a100", "rtx_4090", "h100", "rtx_5090"}) {
    EXPECT_EQ(config(device).tile_m, 64) << device;
    EXPECT_EQ(config(device).work_per_thread, 8) << device;
  }
  for (const char* device : {"rx_6800", "rx_7900_xtx", "rx_9070_xt"}) {
    EXPECT_EQ(config(device).tile_m, 64) << device;
    EXPECT_EQ(config(device).work_per_thread, 4) << device;
  }
  EXPECT_EQ(config("rx_580").tile_m, 32);
  EXPECT_EQ(config("uhd_630").tile_m, 32);
}

TEST(SelectorRules, ConfigurationsCarryTheDocumentedDetails) {
  const KernelSelector gpu(recorded_profile("a100")), integrated(recorded_profile("apple_m1"));
  const auto pointwise = gpu.select_conv2d_kernel(8, 64, 64, 56, 56, 1, 1);
  EXPECT_TRUE(std::get<bool>(pointwise.extra.at("use_1x1_optimization")));
  EXPECT_EQ(gpu.select_conv2d_kernel(8, 64, 64, 56, 56, 3, 3).tile_m, 64);
  EXPECT_EQ(integrated.select_conv2d_kernel(8, 64, 64, 56, 56, 3, 3).tile_m, 32);
  const auto stages = gpu.select_reduction_kernel(1 << 20).extra.at("stages");
  EXPECT_EQ(std::get<std::int64_t>(stages), 2);
  EXPECT_FALSE(gpu.select_matmul_kernel(4, 4, 4).use_local_memory);
}

TEST(SelectorRules, VectorWidthsAreFourOrEightAndLeaveATail) {
  const KernelSelector gpu(recorded_profile("a100")), cpu(recorded_profile("pocl_epyc"));
  EXPECT_EQ(gpu.select_elementwise_kernel(4096).vector_width, 4);
  EXPECT_EQ(cpu.select_elementwise_kernel(4096).vector_width, 8);
  EXPECT_EQ(std::get<std::int64_t>(cpu.select_elementwise_kernel(4099).extra.at("tail")), 3);
  EXPECT_EQ(cpu.select_elementwise_kernel(4096, DType::float32, false).variant,
            V::ELEMENTWISE_SCALAR);
}

TEST(SelectorRules, PackedTilesFollowTheVectorUnit) {
  const auto avx512 =
      KernelSelector(recorded_profile("pocl_epyc")).select_matmul_kernel(512, 512, 512);
  EXPECT_EQ(avx512.tile_m, 8);
  EXPECT_EQ(avx512.tile_n, 48);
  EXPECT_EQ(avx512.vector_width, 16);
  const auto sse = KernelSelector(recorded_profile("llvmpipe")).select_matmul_kernel(512, 512, 512);
  EXPECT_EQ(sse.tile_n, 12);
  const auto halved =
      KernelSelector(recorded_profile("pocl_3_0_epyc")).select_matmul_kernel(512, 512, 512);
  EXPECT_EQ(halved.tile_n, 16);
  EXPECT_EQ(halved.vector_width, 8);
}

TEST(SelectorRules, WinogradDeclinesAWorkspaceThatNoBufferHolds) {
  const auto profile = recorded_profile("rx_580");
  const KernelSelector selector;
  EXPECT_EQ(selector.select(conv2d({.batch = 8}), profile), "CONV2D_WINOGRAD");
  EXPECT_EQ(selector.select(conv2d({.batch = 16384}), profile), "CONV2D_IMPLICIT_GEMM");
}

TEST(SelectorRules, AxesMayHaveAttributesOfTheirOwn) {
  const auto profile = recorded_profile("a100");
  const KernelSelector selector;
  auto problem = conv2d({});
  EXPECT_EQ(selector.select(problem, profile), "CONV2D_WINOGRAD");
  problem.attributes["stride_w"] = std::int64_t{2};
  EXPECT_EQ(selector.select(problem, profile), "CONV2D_IMPLICIT_GEMM");
}

TEST(SelectorRules, LeadingAxesOfAMatmulAreRows) {
  const auto profile = recorded_profile("a100");
  const KernelSelector selector;
  const KernelProblem stacked{"matmul", {Shape{64, 1, 512}, Shape{512, 512}}, DType::float32, {}};
  EXPECT_NE(selector.select(stacked, profile), "MATMUL_GEMV");
  const KernelProblem batched{
      "matmul", {Shape{64, 1, 512}, Shape{64, 512, 512}}, DType::float32, {}};
  EXPECT_EQ(selector.select(batched, profile), "MATMUL_GEMV");
  const KernelProblem vector{"matmul", {Shape{512}, Shape{512, 512}}, DType::float32, {}};
  EXPECT_EQ(selector.select(vector, profile), "MATMUL_GEMV");
}

TEST(SelectorRules, TheDocumentationShowsThisTable) {
  std::ifstream file(NETCL_SOURCE_DIR "/../docs/kernel-selection.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(page.empty());
  EXPECT_NE(page.find(kernel_rules_markdown()), std::string::npos)
      << "docs/kernel-selection.md must hold:\n"
      << kernel_rules_markdown();
}

}  // namespace
}  // namespace netcl
