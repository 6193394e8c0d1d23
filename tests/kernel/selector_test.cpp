// KernelSelector as its users see it: registration, memo, environment, strike-outs, errors.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "netcl/device.h"
#include "netcl/error.h"
#include "netcl/kernel_selector.h"
#include "support/recorded_devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

using test::recorded_profile;
using test::ScopedEnv;
using V = KernelVariant;

const std::vector<Shape> kConv3x3{Shape{8, 64, 56, 56}, Shape{64, 64, 3, 3}};

// ---- the documents' examples

TEST(KernelSelector, SmallShapesTakeTheCustomKernelOfTheDocumentsExample) {
  KernelSelector selector;
  const auto is_small = [](const std::vector<Shape>& shapes, const ExtendedDeviceProfile&) {
    return shapes[0].numel() < 1024;
  };
  selector.register_rule("conv2d", is_small, "CONV2D_NAIVE_SMALL");
  const auto profile = recorded_profile("rtx_4090");
  EXPECT_EQ(selector.select("conv2d", {Shape{1, 3, 8, 8}, Shape{8, 3, 3, 3}}, profile),
            "CONV2D_NAIVE_SMALL");
  EXPECT_EQ(selector.select("conv2d", kConv3x3, profile), "CONV2D_WINOGRAD");
}

TEST(KernelSelector, RulesCanBeInspected) {
  KernelSelector selector;
  const auto before = selector.rules();
  for (const char* op : {"matmul", "conv2d", "elementwise", "reduction", "batchnorm"}) {
    ASSERT_TRUE(before.contains(op)) << op;
    for (const auto& rule : before.at(op)) {
      EXPECT_EQ(rule.source, "builtin");
      EXPECT_FALSE(rule.reason.empty() || rule.when.empty() || rule.kernel.empty());
    }
  }
  EXPECT_GE(before.at("conv2d").size(), 5u);
  EXPECT_GE(before.at("matmul").size(), 4u);
  selector.register_rule(
      "matmul", [](const std::vector<Shape>&, const ExtendedDeviceProfile&) { return false; },
      "MINE", "for a test");
  const auto after = selector.rules("matmul");
  EXPECT_EQ(after.size(), before.at("matmul").size() + 1);
  EXPECT_EQ(after[0].source, "user");
  EXPECT_EQ(after[0].kernel, "MINE");
  EXPECT_EQ(after[0].reason, "for a test");
}

// ---- users' rules

KernelSelector::Condition always(bool answer) {
  return [answer](const std::vector<Shape>&, const ExtendedDeviceProfile&) { return answer; };
}

TEST(KernelSelector, UserRulesComeFirstInOrderOfRegistration) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector;
  selector.register_rule("conv2d", always(false), "FIRST");
  selector.register_rule("conv2d", always(true), "SECOND");
  selector.register_rule("conv2d", always(true), "THIRD");
  EXPECT_EQ(selector.select("conv2d", kConv3x3, profile), "SECOND");
}

TEST(KernelSelector, ALaterRuleReplacesRememberedDecisions) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector;
  EXPECT_EQ(selector.select("conv2d", kConv3x3, profile), "CONV2D_WINOGRAD");
  selector.register_rule("conv2d", always(true), "MINE");
  EXPECT_EQ(selector.select("conv2d", kConv3x3, profile), "MINE");
}

// Several rules have this kernel, each with the tiles of its vendor.
TEST(KernelSelector, AUsersRuleGetsTheConfigurationOfItsDevice) {
  for (const auto& [device, work] : {std::pair{"a100", 8}, {"rx_6800", 4}, {"mi210", 4}}) {
    KernelSelector selector(recorded_profile(device));
    selector.register_rule("matmul", always(true), "MATMUL_REGISTER_TILED");
    const auto config = selector.select_matmul_kernel(2048, 2048, 2048);
    EXPECT_EQ(config.variant, V::MATMUL_REGISTER_TILED) << device;
    EXPECT_EQ(config.work_per_thread, work) << device;
  }
}

TEST(KernelSelector, AUserRuleMayNameABuiltInVariant) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector(profile);
  selector.register_rule("conv2d", always(true), "CONV2D_IM2COL");
  EXPECT_EQ(selector.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3).variant, V::CONV2D_IM2COL);
}

TEST(KernelSelector, ACustomKernelIsNamedInTheConfig) {
  KernelSelector selector(recorded_profile("a100"));
  selector.register_rule("matmul", always(true), "MY_MATMUL");
  const auto config = selector.select_matmul_kernel(64, 64, 64);
  EXPECT_EQ(config.variant, V::CUSTOM);
  EXPECT_EQ(std::get<std::string>(config.extra.at("kernel")), "MY_MATMUL");
}

TEST(KernelSelector, ProblemConditionsSeeDtypeAndAttributes) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector(profile);
  selector.register_rule(
      "conv2d",
      [](const KernelProblem& problem, const ExtendedDeviceProfile&) {
        return problem.dtype == DType::float16 && problem.integer("groups", 1) == 2;
      },
      "HALF_GROUPED");
  KernelProblem problem{"conv2d", kConv3x3, DType::float16, {{"groups", std::int64_t{2}}}};
  EXPECT_EQ(selector.select(problem, profile), "HALF_GROUPED");
  problem.dtype = DType::float32;
  EXPECT_EQ(selector.select(problem, profile), "CONV2D_IMPLICIT_GEMM");
}

TEST(KernelSelector, OpsOfTheUsersOwnWorkAndSayWhenNothingHolds) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector;
  selector.register_rule(
      "fft",
      [](const std::vector<Shape>& shapes, const ExtendedDeviceProfile&) {
        return shapes[0].numel() == 8;
      },
      "FFT8");
  EXPECT_EQ(selector.select("fft", {Shape{8}}, profile), "FFT8");
  try {
    selector.select("fft", {Shape{9}}, profile);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("FFT8"), std::string::npos) << error.what();
  }
}

TEST(KernelSelector, AnUnknownOpIsAnErrorThatListsTheKnownOnes) {
  KernelSelector selector;
  selector.register_rule("fft", always(true), "FFT");
  try {
    selector.select("conv2", kConv3x3, recorded_profile("a100"));
    FAIL();
  } catch (const ArgumentError& error) {
    const std::string text = error.what();
    for (const char* part : {"conv2", "batchnorm", "conv2d", "elementwise", "fft", "matmul"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(KernelSelector, BadRulesAndProblemsAreRefused) {
  KernelSelector selector(recorded_profile("a100"));
  EXPECT_THROW(selector.register_rule("", always(true), "X"), ArgumentError);
  EXPECT_THROW(selector.register_rule("matmul", always(true), ""), ArgumentError);
  EXPECT_THROW(selector.register_rule("matmul", KernelSelector::Condition(), "X"), ArgumentError);
  EXPECT_THROW(selector.select_matmul_kernel(-1, 2, 3), ShapeError);
  EXPECT_THROW(selector.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 0), ArgumentError);
  EXPECT_THROW(selector.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, -1), ArgumentError);
  EXPECT_THROW(selector.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, 1, DType::float32, 1, 3),
               ArgumentError);
  KernelProblem text{"conv2d", kConv3x3, DType::float32, {{"stride", std::string("one")}}};
  EXPECT_THROW(selector.select(text, recorded_profile("a100")), ArgumentError);
}

TEST(KernelSelector, AThrowingConditionReachesTheCallerAndIsNotRemembered) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector;
  int calls = 0;
  selector.register_rule(
      "matmul",
      [&calls](const std::vector<Shape>&, const ExtendedDeviceProfile&) -> bool {
        if (++calls == 1) throw std::runtime_error("first");
        return true;
      },
      "MINE");
  EXPECT_THROW(selector.select("matmul", {Shape{2, 2}, Shape{2, 2}}, profile), std::runtime_error);
  EXPECT_EQ(selector.select("matmul", {Shape{2, 2}, Shape{2, 2}}, profile), "MINE");
}

TEST(KernelSelector, ConditionsMayUseTheSelector) {
  const auto profile = recorded_profile("a100");
  KernelSelector selector;
  selector.register_rule(
      "matmul",
      [&](const std::vector<Shape>&, const ExtendedDeviceProfile&) {
        return selector.select("elementwise", {Shape{4096}}, profile) == "ELEMENTWISE_VECTORIZED";
      },
      "NESTED");
  EXPECT_EQ(selector.select("matmul", {Shape{2, 2}, Shape{2, 2}}, profile), "NESTED");
}

// ---- the memo

struct Counter {
  std::atomic<int> calls{0};
  KernelSelector::Condition condition() {
    return [this](const std::vector<Shape>&, const ExtendedDeviceProfile&) {
      ++calls;
      return false;
    };
  }
};

// A cache that is emptied whenever the device changes never serves two of them.
TEST(SelectorMemo, TwoDevicesInTurnDecideOnceEach) {
  const auto gpu = recorded_profile("rtx_4090"), cpu = recorded_profile("pocl_epyc");
  Counter counter;
  KernelSelector selector;
  selector.register_rule("conv2d", counter.condition(), "NEVER");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_WINOGRAD");
    EXPECT_EQ(selector.select("conv2d", kConv3x3, cpu), "CONV2D_WINOGRAD_PANELS");
  }
  EXPECT_EQ(counter.calls, 2);
  EXPECT_EQ(selector.cache_size(), 2u);
  selector.clear_cache();
  EXPECT_EQ(selector.cache_size(), 0u);
  selector.select("conv2d", kConv3x3, gpu);
  EXPECT_EQ(counter.calls, 3);
}

TEST(SelectorMemo, EqualProfilesAtOtherAddressesShareEntriesAndChangedOnesDoNot) {
  Counter counter;
  KernelSelector selector;
  selector.register_rule("conv2d", counter.condition(), "NEVER");
  auto profile = recorded_profile("rtx_4090");
  const auto copy = profile;
  selector.select("conv2d", kConv3x3, profile);
  selector.select("conv2d", kConv3x3, copy);
  EXPECT_EQ(counter.calls, 1);
  profile.max_mem_alloc_size = 1024;  // the same object, another device
  EXPECT_EQ(selector.select("conv2d", kConv3x3, profile), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(counter.calls, 2);
}

TEST(SelectorMemo, EverythingThatDecidesIsInTheKey) {
  const auto profile = recorded_profile("rtx_4090");
  const KernelProblem base{"conv2d", kConv3x3, DType::float32, {{"stride", std::int64_t{1}}}};
  std::vector<KernelProblem> problems(9, base);
  problems[1].dtype = DType::float16;
  problems[2].shapes[1] = Shape{64, 64, 5, 5};
  problems[3].attributes["stride"] = std::int64_t{2};
  problems[4].attributes["padding"] = std::int64_t{1};
  problems[5].shapes.push_back(Shape{64});
  problems[6].shapes = {Shape{8, 64, 56, 56, 64, 64, 3, 3}};
  problems[7].attributes["stride"] = true;
  problems[8].shapes = {Shape{8, 64, 56, 56, 64}, Shape{64, 3, 3}};
  Counter counter;
  KernelSelector selector;
  selector.register_rule("conv2d", counter.condition(), "NEVER");
  for (int round = 0; round < 2; ++round)
    for (const auto& problem : problems) selector.select(problem, profile);
  EXPECT_EQ(counter.calls, static_cast<int>(problems.size()));
}

TEST(SelectorMemo, TypedCallsAreRememberedByAllTheirArguments) {
  Counter matmul, conv2d, elementwise, reduction, batchnorm;
  KernelSelector s(recorded_profile("rtx_4090"));
  s.register_rule("matmul", matmul.condition(), "NEVER");
  s.register_rule("conv2d", conv2d.condition(), "NEVER");
  s.register_rule("elementwise", elementwise.condition(), "NEVER");
  s.register_rule("reduction", reduction.condition(), "NEVER");
  s.register_rule("batchnorm", batchnorm.condition(), "NEVER");
  const auto f32 = DType::float32, f16 = DType::float16;
  for (int round = 0; round < 2; ++round) {
    for (auto [M, N, K] : {std::array{8, 16, 32}, {16, 8, 32}, {8, 32, 16}})
      for (const auto dtype : {f32, f16})
        for (const bool vectors : {true, false}) s.select_matmul_kernel(M, N, K, dtype, vectors);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 2);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, 1);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, 1, f16);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, 1, f32, 2);
    s.select_conv2d_kernel(1, 8, 8, 8, 8, 3, 3, 1, 1, f32, 1, 2);
    for (const bool vectors : {true, false}) s.select_elementwise_kernel(4096, f32, vectors);
    for (const char* kind : {"sum", "max"}) s.select_reduction_kernel(4096, kind);
    for (const bool training : {true, false})
      for (const bool relu : {true, false}) s.select_batchnorm_kernel(2, 3, 4, training, relu);
  }
  EXPECT_EQ(matmul.calls, 12);
  EXPECT_EQ(conv2d.calls, 6);
  EXPECT_EQ(elementwise.calls, 2);
  EXPECT_EQ(reduction.calls, 2);
  EXPECT_EQ(batchnorm.calls, 4);
}

TEST(SelectorMemo, IsBoundedAndTakesHugeProblems) {
  const auto profile = recorded_profile("rtx_4090");
  KernelSelector selector(profile);
  for (int n = 0; n < 100000; ++n) selector.select_elementwise_kernel(n);
  EXPECT_LE(selector.cache_size(), 65536u);
  EXPECT_GT(selector.cache_size(), 1000u);
  // More words than a key keeps without allocating.
  std::vector<Shape> many(100, Shape{2, 3});
  EXPECT_EQ(selector.select("elementwise", many, profile), "ELEMENTWISE_SCALAR");
  many.back() = Shape{64, 64};
  EXPECT_EQ(selector.select("elementwise", many, profile), "ELEMENTWISE_VECTORIZED");
  many.back() = Shape{2, 3};
  EXPECT_EQ(selector.select("elementwise", many, profile), "ELEMENTWISE_SCALAR");
}

template <class Call>
std::chrono::nanoseconds best_of_many(Call&& call) {
  auto best = std::chrono::nanoseconds::max();
  for (int round = 0; round < 500; ++round) {
    const auto start = std::chrono::steady_clock::now();
    call();
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - start);
  }
  return best;
}

// A ratio, so that sanitizers and loaded machines pass; bench/selector_bench.cpp has the time.
TEST(SelectorMemo, AHitIsMuchCheaperThanADecision) {
  const auto profile = recorded_profile("rtx_4090");
  const KernelSelector selector;
  const KernelProblem problem{"conv2d", kConv3x3, DType::float32, {}};
  const auto hit = best_of_many([&] { selector.decide(problem, profile); });
  const auto fresh = best_of_many([&] { selector.explain(problem, profile); });
  EXPECT_LT(3 * hit.count(), fresh.count());
}

TEST(SelectorMemo, ThreadsThatSelectRegisterAndStrikeOutAgree) {
  const auto gpu = recorded_profile("rtx_4090"), cpu = recorded_profile("pocl_epyc");
  KernelSelector selector;
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 2000; ++i) {
          const Shape x{1 + i % 7, 64, 56, 56}, w{64, 64, 3, 3};
          const bool on_gpu = (i + t) % 2 == 0;
          const auto kernel = selector.select("conv2d", {x, w}, on_gpu ? gpu : cpu);
          const bool right = kernel == (on_gpu ? "CONV2D_WINOGRAD" : "CONV2D_WINOGRAD_PANELS") ||
                             (on_gpu && kernel == "CONV2D_IMPLICIT_GEMM");
          if (!right) ++wrong;
        }
      });
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) selector.register_rule("conv2d", always(false), "NEVER");
      selector.strike_out(gpu, "CONV2D_WINOGRAD", "thread test");
      for (int i = 0; i < 50; ++i) selector.clear_cache();
    });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(selector.rules("conv2d")[49].kernel, "NEVER");
}

// ---- struck-out kernels

TEST(StrikeOut, TheNextRuleThatHoldsIsTakenOnThatDeviceOnly) {
  const auto gpu = recorded_profile("rtx_4090"), other = recorded_profile("a100");
  KernelSelector selector;
  EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_WINOGRAD");
  testing::internal::CaptureStderr();
  selector.strike_out(gpu, "CONV2D_WINOGRAD", "strike-out test: ptxas failed");
  selector.strike_out(gpu, "CONV2D_WINOGRAD", "strike-out test: ptxas failed");
  const auto warning = testing::internal::GetCapturedStderr();
  const auto first = warning.find("ptxas failed");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(warning.find(gpu.name), std::string::npos);
  EXPECT_EQ(warning.find("ptxas failed", first + 1), std::string::npos) << "one warning";
  EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(selector.select("conv2d", kConv3x3, other), "CONV2D_WINOGRAD");
  EXPECT_EQ(selector.struck_out(gpu).at("CONV2D_WINOGRAD"), "strike-out test: ptxas failed");
  EXPECT_TRUE(selector.struck_out(other).empty());
  selector.clear_cache();
  EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_IMPLICIT_GEMM");
}

TEST(StrikeOut, AlsoTakesUsersKernelsOut) {
  const auto gpu = recorded_profile("rtx_4090");
  KernelSelector selector;
  selector.register_rule("conv2d", always(true), "MINE");
  selector.strike_out(gpu, "MINE", "user's kernel does not compile");
  EXPECT_EQ(selector.select("conv2d", kConv3x3, gpu), "CONV2D_WINOGRAD");
}

TEST(StrikeOut, EveryKernelGoneIsAnErrorThatSaysWhy) {
  const auto gpu = recorded_profile("rtx_4090");
  KernelSelector selector;
  for (const auto& rule : selector.rules("batchnorm"))
    selector.strike_out(gpu, rule.kernel, "no compiler today");
  try {
    selector.select("batchnorm", {Shape{2, 3, 4}}, gpu);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("no compiler today"), std::string::npos);
  }
}

// ---- the environment

TEST(SelectorEnvironment, ChangesCountAfterClearCache) {
  const ScopedEnv winograd("NETCL_CONV_WINOGRAD", nullptr),
      local("NETCL_CONV_TILED_LOCAL", nullptr);
  KernelSelector selector(recorded_profile("rtx_4090"));
  const auto small = [&] { return selector.select_conv2d_kernel(1, 64, 64, 8, 8, 3, 3).variant; };
  EXPECT_EQ(small(), V::CONV2D_WINOGRAD);
  const ScopedEnv off("NETCL_CONV_WINOGRAD", "0");
  EXPECT_EQ(small(), V::CONV2D_WINOGRAD) << "remembered until the environment is read again";
  selector.clear_cache();
  EXPECT_EQ(small(), V::CONV2D_IMPLICIT_GEMM);
  EXPECT_EQ(KernelSelector(recorded_profile("rtx_4090"))
                .select_conv2d_kernel(1, 64, 64, 8, 8, 3, 3)
                .variant,
            V::CONV2D_IMPLICIT_GEMM);
  const ScopedEnv on("NETCL_CONV_TILED_LOCAL", "1");
  selector.clear_cache();
  EXPECT_EQ(small(), V::CONV2D_TILED_LOCAL);
  EXPECT_EQ(selector.select_conv2d_kernel(1, 64, 64, 56, 56, 3, 3).variant,
            V::CONV2D_IMPLICIT_GEMM);
}

TEST(SelectorEnvironment, TheProcessesSelectorNoticesChangesByItself) {
  const auto profile = recorded_profile("rtx_4090");
  const ScopedEnv on("NETCL_CONV_WINOGRAD", nullptr);
  EXPECT_EQ(get_kernel_selector().select("conv2d", kConv3x3, profile), "CONV2D_WINOGRAD");
  {
    const ScopedEnv off("NETCL_CONV_WINOGRAD", "0");
    EXPECT_EQ(get_kernel_selector().select("conv2d", kConv3x3, profile), "CONV2D_IMPLICIT_GEMM");
  }
  EXPECT_EQ(get_kernel_selector().select("conv2d", kConv3x3, profile), "CONV2D_WINOGRAD");
}

TEST(SelectorEnvironment, StrategyForcesPortableKernels) {
  const ScopedEnv portable("NETCL_KERNEL_STRATEGY", "portable");
  const KernelSelector selector(recorded_profile("rtx_4090"));
  EXPECT_EQ(selector.select_matmul_kernel(1024, 1024, 1024).variant, V::MATMUL_TILED);
  EXPECT_EQ(selector.select_conv2d_kernel(8, 64, 64, 56, 56, 3, 3).variant,
            V::CONV2D_IMPLICIT_GEMM);
}

TEST(SelectorEnvironment, StrategyForcesOptimizedKernelsOnUnknownDevices) {
  {
    const ScopedEnv automatic("NETCL_KERNEL_STRATEGY", "auto");
    const KernelSelector selector(recorded_profile("powervr"));
    EXPECT_EQ(selector.select_matmul_kernel(1024, 1024, 1024).variant, V::MATMUL_TILED);
  }
  const ScopedEnv optimized("NETCL_KERNEL_STRATEGY", "optimized");
  const KernelSelector selector(recorded_profile("powervr"));
  EXPECT_EQ(selector.select_matmul_kernel(1024, 1024, 1024).variant, V::MATMUL_REGISTER_TILED);
}

// ---- explanations

TEST(SelectorExplain, NamesTheRuleAndWhyTheOthersDeclined) {
  const auto profile = recorded_profile("rtx_4090");
  const KernelSelector selector;
  const KernelProblem problem{"conv2d", kConv3x3, DType::float32, {{"stride", std::int64_t{2}}}};
  const auto decision = selector.explain(problem, profile);
  EXPECT_EQ(decision.kernel, "CONV2D_IMPLICIT_GEMM");
  EXPECT_FALSE(decision.by_user);
  EXPECT_EQ(decision.declined.size(), decision.rule);
  const auto all = selector.rules("conv2d");
  for (std::size_t i = 0; i < decision.rule; ++i)
    EXPECT_EQ(decision.declined[i].kernel, all[i].kernel);
  EXPECT_EQ(decision.kernel, all[decision.rule].kernel);
  EXPECT_NE(decision.to_string().find("CONV2D_WINOGRAD: stride (2, 2)"), std::string::npos)
      << decision.to_string();
  EXPECT_EQ(selector.cache_size(), 0u);
}

TEST(SelectorExplain, DebugLevelTwoPrintsTheFirstDecisionOnly) {
  const auto before = log::level();
  const KernelSelector selector(recorded_profile("rx_6800"));
  log::set_level(2);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) selector.select_matmul_kernel(1024, 1024, 1024);
  const auto text = testing::internal::GetCapturedStderr();
  log::set_level(before);
  const auto first = text.find("matmul (1024, 1024) (1024, 1024) float32 on gfx1030");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("MATMUL_REGISTER_TILED"), std::string::npos) << text;
  EXPECT_NE(text.find("not MATMUL_PACKED: the device is no CPU"), std::string::npos) << text;
  EXPECT_EQ(text.find("matmul (1024", first + 1), std::string::npos) << text;
}

// ---- the process's selector and devices of this machine

TEST(ProcessSelector, IsOneObjectAndBindsToDevices) {
  EXPECT_EQ(&get_kernel_selector(), &get_kernel_selector());
  const auto host = get_kernel_selector(Device{});
  EXPECT_EQ(&host.profile(), &device_profile(Device{}));
  EXPECT_EQ(select_matmul_config(512, 512, 512, Device{}).variant, V::MATMUL_PACKED);
  EXPECT_EQ(select_conv2d_config(8, 64, 64, 56, 56, 3, 3, 1, 1, Device{}).variant,
            V::CONV2D_WINOGRAD_PANELS);
}

TEST(ProcessSelector, FollowsTheActiveDevice) {
  const ActiveDevice active("cpu");
  EXPECT_EQ(&get_kernel_selector().profile(), &device_profile(Device{}));
  EXPECT_EQ(select_matmul_config(512, 512, 512), select_matmul_config(512, 512, 512, Device{}));
  EXPECT_EQ(select_conv2d_config(8, 64, 64, 56, 56, 3, 3).variant, V::CONV2D_WINOGRAD_PANELS);
}

// Going by names fails on PoCL, whose device names carry no "cpu".
TEST(ProcessSelector, OpenClCpuDevicesGetCpuKernels) {
  int cpus = 0;
  for (const auto& found : manager().discover()) {
    if (found.device_type != "cpu") continue;
    ++cpus;
    const auto selector = get_kernel_selector(found.device);
    EXPECT_EQ(selector.select_matmul_kernel(512, 512, 512).variant, V::MATMUL_PACKED);
    EXPECT_FALSE(selector.select_matmul_kernel(512, 512, 512).use_local_memory);
    EXPECT_EQ(selector.select_conv2d_kernel(8, 64, 64, 56, 56, 5, 5).variant, V::CONV2D_PACKED);
    EXPECT_EQ(selector.select_reduction_kernel(1 << 20).variant, V::REDUCTION_CHUNKED);
  }
  if (cpus == 0) GTEST_SKIP() << "no OpenCL CPU device here";
}

// ---- names

TEST(KernelVariant, NamesRoundTrip) {
  for (int i = 0; i < kKernelVariants; ++i) {
    const auto variant = static_cast<V>(i);
    EXPECT_EQ(parse_kernel_variant(name_of(variant)), variant);
  }
  EXPECT_EQ(name_of(V::CONV2D_TILED_LOCAL), "CONV2D_TILED_LOCAL");
  EXPECT_EQ(name_of(V::BATCHNORM_FUSED), "BATCHNORM_FUSED");
  EXPECT_THROW(parse_kernel_variant("MATMUL_FAST"), ArgumentError);
  EXPECT_FALSE(find_kernel_variant("matmul_naive"));
}

TEST(KernelVariant, TheDocumentedNamesExist) {
  for (const char* name :
       {"MATMUL_NAIVE", "MATMUL_TILED", "MATMUL_REGISTER_TILED", "MATMUL_VECTORIZED",
        "CONV2D_NAIVE", "CONV2D_IM2COL", "CONV2D_IMPLICIT_GEMM", "CONV2D_TILED_LOCAL",
        "CONV2D_WINOGRAD", "ELEMENTWISE_SCALAR", "ELEMENTWISE_VECTORIZED", "REDUCTION_SEQUENTIAL",
        "REDUCTION_PARALLEL", "REDUCTION_WORKGROUP", "BATCHNORM_NAIVE", "BATCHNORM_FUSED"})
    EXPECT_TRUE(find_kernel_variant(name)) << name;
}

TEST(KernelConfig, HasTheDocumentedDefaults) {
  const KernelConfig config;
  EXPECT_EQ(config.tile_m, 32);
  EXPECT_EQ(config.tile_n, 32);
  EXPECT_EQ(config.tile_k, 8);
  EXPECT_EQ(config.work_per_thread, 4);
  EXPECT_EQ(config.local_size_1d, 256);
  EXPECT_EQ(config.local_size_2d, std::make_pair(16, 16));
  EXPECT_TRUE(config.use_local_memory && config.use_vectorization);
  EXPECT_EQ(config.vector_width, 4);
  EXPECT_TRUE(config.extra.empty());
}

}  // namespace
}  // namespace netcl
