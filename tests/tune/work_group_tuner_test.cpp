// WorkGroupTuner: the rules, the candidates, and that measuring prefers fast and right.
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "tune/candidates.h"
#include "tune/compare.h"
#include "tune/tune_fixture.h"

namespace netcl {
namespace {

using tune::default_candidates;
using tune::SizeLimits;

constexpr SizeLimits kGpu{.total = 256, .each = {1024, 1024, 64}};

bool contains(const std::vector<WorkSize>& list, const WorkSize& size) {
  return std::find(list.begin(), list.end(), size) != list.end();
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return tune::same_result(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), dtype_v<T>);
}

// ---- without a device

TEST(TuneCandidates, OneDimension) {
  const auto list = default_candidates(kGpu, 4096, 64);
  EXPECT_EQ(list[0], WorkSize(64)) << "what is launched without tuning comes first";
  EXPECT_EQ(list[1], WorkSize()) << "then the driver's own choice";
  for (std::int64_t size = 1; size <= 256; size *= 2) EXPECT_TRUE(contains(list, size)) << size;
  EXPECT_FALSE(contains(list, 512));
  EXPECT_EQ(list.size(), 10U);
}

TEST(TuneCandidates, OnlyDivisorsUnlessTheKernelGuardsItsRange) {
  auto limits = kGpu;
  const auto exact = default_candidates(limits, 1000, WorkSize());
  for (const auto& size : exact) EXPECT_TRUE(size.empty() || 1000 % size[0] == 0);
  EXPECT_TRUE(contains(exact, 50) && contains(exact, 125) && contains(exact, 250));
  limits.rounds_up = true;
  const auto rounded = default_candidates(limits, 1000, 64);
  EXPECT_TRUE(contains(rounded, 256));
  EXPECT_FALSE(contains(default_candidates(limits, 5, 8), 16)) << "most of it would idle";
}

TEST(TuneCandidates, TwoAndThreeDimensionsStayWithinTheLimits) {
  for (const WorkSize& global : {WorkSize({256, 256}), WorkSize({64, 16, 128})}) {
    const auto list = default_candidates(kGpu, global, WorkSize({64}));
    std::set<std::string> names;
    for (const auto& size : list) {
      EXPECT_TRUE(tune::allows(kGpu, global, size)) << size.to_string();
      EXPECT_TRUE(size.empty() || size.rank() == global.rank());
      EXPECT_TRUE(names.insert(size.to_string()).second) << "twice: " << size.to_string();
    }
    EXPECT_GT(list.size(), 12U);
    EXPECT_LT(list.size(), 40U);
  }
  EXPECT_TRUE(contains(default_candidates(kGpu, {256, 256}, 64), {16, 16}));
  EXPECT_TRUE(contains(default_candidates(kGpu, {64, 16, 128}, 64), {4, 4, 4}));
}

TEST(TuneCandidates, RequiredSizeIsTheOnlyOne) {
  auto limits = kGpu;
  limits.is_fixed = true;
  EXPECT_EQ(default_candidates(limits, {64, 64}, {8, 8}), (std::vector<WorkSize>{{8, 8}}));
}

TEST(TuneCandidates, RoundingUp) {
  EXPECT_EQ(tune::rounded_up({100, 7}, 64), WorkSize({128, 7}));
  EXPECT_EQ(tune::rounded_up({100, 7, 3}, {32, 4, 2}), WorkSize({128, 8, 4}));
  EXPECT_EQ(tune::rounded_up(100, WorkSize()), WorkSize(100));
}

TEST(TuneCompare, RoundingIsForgivenAndNothingElse) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(same<float>({1, nan, infinity}, {1.00001F, nan, infinity}));
  EXPECT_FALSE(same<float>({1, 2}, {1, 2.1F}));
  EXPECT_FALSE(same<float>({1, 2}, {1, nan}));
  EXPECT_FALSE(same<float>({1, nan}, {1, 2}));
  EXPECT_FALSE(same<float>({1, infinity}, {1, -infinity}));
  // A sum that cancels: its error is that of its terms.
  EXPECT_TRUE(same<float>({1000, 1e-3F}, {1000, 0}));
  EXPECT_FALSE(same<double>({1}, {1.00001}));
  EXPECT_FALSE(same<std::int32_t>({1000000}, {1000001}));
  const std::vector<float16_t> one{float16_t(1.0F)}, near{float16_t(1.01F)}, two{float16_t(2.0F)};
  EXPECT_TRUE(same(one, near));
  EXPECT_FALSE(same(one, two));
  const std::vector<std::byte> a(4, std::byte{1}), b(4, std::byte{2});
  EXPECT_TRUE(tune::same_result(a, a, std::nullopt));
  EXPECT_FALSE(tune::same_result(a, b, std::nullopt));
}

TEST(TuneCompare, ElementTypesOfParameters) {
  EXPECT_EQ(tune::element_type("float4*"), DType::float32);
  EXPECT_EQ(tune::element_type("half *"), DType::float16);
  EXPECT_EQ(tune::element_type("ulong"), DType::int64);
  EXPECT_EQ(tune::element_type("struct pair*"), std::nullopt);
}

// ---- with one

class WorkGroupTunerTest : public test::TuneTest {};

TEST_F(WorkGroupTunerTest, Rules) {
  const auto device = queue.device();
  const auto limit = device_profile(device).max_work_group_size;
  EXPECT_EQ(WorkGroupTuner().choose_local_size(device),
            std::bit_floor(std::min<std::size_t>(limit, 256)));
  EXPECT_EQ(WorkGroupTuner(100).choose_local_size(device), 64U);
  EXPECT_EQ(WorkGroupTuner(64).global_local_sizes(1000, device),
            std::pair(std::size_t{1024}, WorkSize(64)));
  EXPECT_EQ(WorkGroupTuner(64).global_local_sizes(0, device),
            std::pair(std::size_t{0}, WorkSize(64)));
  EXPECT_EQ(WorkGroupTuner().global_local_sizes(10, Device()),
            std::pair(std::size_t{10}, WorkSize()));
  EXPECT_THROW(WorkGroupTuner(0), ArgumentError);
}

TEST_F(WorkGroupTunerTest, MeasuresEveryCandidateAndChangesNothing) {
  const auto kernel = test::scale_by_two().build(queue).kernel();
  const auto x = ramp(4096);
  const auto result = WorkGroupTuner().tune(queue, kernel, 4096, {}, {x});
  EXPECT_EQ(x.to_vector<float>(), test::doubled(4096, 0));
  EXPECT_GT(result.runtime_us, 0);
  EXPECT_GT(result.default_us, 0);
  EXPECT_GE(result.candidates.size(), 10U);
  for (const auto& candidate : result.candidates) {
    EXPECT_EQ(candidate.note, "") << candidate.local_size.to_string();
    EXPECT_GE(candidate.runtime_us, result.runtime_us);
  }
  EXPECT_EQ(default_tuning_store().size(), 0U) << "tune() itself stores nothing";
}

TEST_F(WorkGroupTunerTest, MaxLocalBoundsTheCandidates) {
  const auto kernel = test::scale_by_two().build(queue).kernel();
  const auto result = WorkGroupTuner(32).tune(queue, kernel, 1024, {}, {ramp(1024)});
  for (const auto& candidate : result.candidates) {
    EXPECT_FALSE(candidate.local_size.empty());
    EXPECT_LE(candidate.local_size.total(), 32U);
  }
}

TEST_F(WorkGroupTunerTest, FastAndWrongLoses) {
  const auto kernel = test::wrong_unless_sixty_four().build(queue).kernel();
  const auto y = Tensor::full(queue, {1024}, 0.0);
  const auto result = WorkGroupTuner().tune(queue, kernel, 1024, {64, 128, 32, 16}, {y});
  EXPECT_EQ(result.best_local_size, WorkSize(64));
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(result.candidates[i].note, "wrong result");
  // The same in the middle of a launch.
  kernel(queue, 1024, nullptr, y);
  EXPECT_GT(y.to_vector<float>()[0], 0);
}

TEST_F(WorkGroupTunerTest, CandidatesThatCannotBeLaunchedAreNotedAndSkipped) {
  const auto kernel = test::scale_by_two().build(queue).kernel();
  const auto result =
      WorkGroupTuner(kernel, 96, {WorkSize(7), WorkSize(32), WorkSize(1 << 20)}).tune(queue);
  EXPECT_EQ(result.best_local_size, WorkSize(32));
  EXPECT_NE(result.candidates[0].note.find("multiple of the local size"), std::string::npos);
  EXPECT_NE(result.candidates[2].note, "");
  EXPECT_EQ(result.candidates[0].runtime_us, 0);
  EXPECT_THROW(WorkGroupTuner(kernel, 96, {WorkSize(7)}).tune(queue), ShapeError);
  EXPECT_THROW(WorkGroupTuner(kernel, 0).tune(queue), ShapeError);
  EXPECT_THROW(WorkGroupTuner().tune(CPUQueue(), kernel, 96), DeviceError);
}

TEST_F(WorkGroupTunerTest, ArgumentsAreInventedFromTheSignature) {
  const auto matmul = test::matmul("matmul_invented").build(queue).kernel();
  // Wider than high: rows times K must stay inside the invented memory.
  const auto result = WorkGroupTuner().tune(queue, matmul, {64, 4}, {{8, 1}, {16, 4}, {64, 1}});
  EXPECT_EQ(result.candidates.size(), 3U);
  for (const auto& candidate : result.candidates) EXPECT_EQ(candidate.note, "");
  const KernelSpec all{.name = "all_kinds", .src = R"(__kernel void all_kinds(
          __global const float4* a, __global int* index, __constant float* table, __local float* mine,
          char c, ushort s, uint u, long l, float f, float4 v, __global float* out) {
        const size_t i = get_global_id(0);
        mine[get_local_id(0)] = table[i] + f;
        out[i] = a[i].x + a[i].w + v.x + mine[get_local_id(0)] + a[index[i]].y + (c + s + u + l) * 0;
      })"};
  const auto kernel = all.build(queue).kernel();
  EXPECT_GT(WorkGroupTuner().tune(queue, kernel, 1024, {16, 64}).runtime_us, 0);
}

TEST_F(WorkGroupTunerTest, StructsCannotBeInvented) {
  const KernelSpec spec{.name = "by_struct", .src = R"(struct pair { int a; int b; };
                                  __kernel void by_struct(struct pair p, __global int* y) {
                                    y[get_global_id(0)] = p.a + p.b;
                                  })"};
  const auto kernel = spec.build(queue).kernel();
  EXPECT_THROW(WorkGroupTuner().tune(queue, kernel, 64), ArgumentError);
  struct {
    int a, b;
  } pair{1, 2};
  const auto y = Tensor::full(queue, {64}, 0, DType::int32);
  const auto result = WorkGroupTuner().tune(queue, kernel, 64, {8, 64},
                                            {KernelArg::by_value(&pair, sizeof pair), y});
  EXPECT_GT(result.runtime_us, 0);
}

TEST_F(WorkGroupTunerTest, GivenLocalMemoryBoundsTheCandidates) {
  const KernelSpec spec{.name = "uses_local",
                        .src = R"(__kernel void uses_local(__global float* y, __local float* mine) {
                                    mine[get_local_id(0)] = y[get_global_id(0)];
                                    barrier(CLK_LOCAL_MEM_FENCE);
                                    y[get_global_id(0)] = mine[get_local_id(0)] + 1.0f;
                                  })"};
  const auto kernel = spec.build(queue).kernel();
  const auto result = WorkGroupTuner().tune(queue, kernel, 256, {},
                                            {ramp(256), KernelArg::local(64 * sizeof(float))});
  for (const auto& candidate : result.candidates) {
    EXPECT_LE(candidate.local_size.total(), 64U);
    EXPECT_FALSE(candidate.local_size.empty());
  }
}

TEST_F(WorkGroupTunerTest, QueuesWithTimersAreUsedAsTheyAre) {
  const auto timed = Queue::create(queue.context(), queue.device(), true);
  const auto kernel = test::scale_by_two().build(timed).kernel();
  EXPECT_GT(WorkGroupTuner().tune(timed, kernel, 1024, {16, 64}).runtime_us, 0);
}

}  // namespace
}  // namespace netcl
