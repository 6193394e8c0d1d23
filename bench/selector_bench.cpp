// What a kernel decision costs: from the memo, which every op pays at each call, and made afresh;
// and to find what was tuned.
#include <benchmark/benchmark.h>

#include "netcl/device.h"
#include "netcl/kernel_selector.h"
#include "netcl/tuning_store.h"

namespace {

using namespace netcl;

KernelProblem conv2d_problem() {
  return {"conv2d",
          {Shape{8, 64, 56, 56}, Shape{64, 64, 3, 3}},
          DType::float32,
          {{"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}}};
}

void memo_hit_decide(benchmark::State& state) {
  const auto& profile = device_profile(Device{});
  static const KernelSelector selector;
  const auto problem = conv2d_problem();
  for (auto _ : state) benchmark::DoNotOptimize(selector.decide(problem, profile));
}
BENCHMARK(memo_hit_decide)->Threads(1)->Threads(2);

void memo_hit_select(benchmark::State& state) {
  const auto& profile = device_profile(Device{});
  const KernelSelector selector;
  const std::vector<Shape> shapes{Shape{8, 64, 56, 56}, Shape{64, 64, 3, 3}};
  for (auto _ : state) benchmark::DoNotOptimize(selector.select("conv2d", shapes, profile));
}
BENCHMARK(memo_hit_select);

void memo_hit_select_matmul_kernel(benchmark::State& state) {
  const KernelSelector selector(device_profile(Device{}));
  for (auto _ : state) benchmark::DoNotOptimize(selector.select_matmul_kernel(512, 512, 512));
}
BENCHMARK(memo_hit_select_matmul_kernel);

void memo_hit_two_devices_in_turn(benchmark::State& state) {
  const auto& host = device_profile(Device{});
  auto other = host;
  other.name = "another";
  const KernelSelector selector;
  const auto problem = conv2d_problem();
  for (auto _ : state) {
    benchmark::DoNotOptimize(selector.decide(problem, host));
    benchmark::DoNotOptimize(selector.decide(problem, other));
  }
}
BENCHMARK(memo_hit_two_devices_in_turn);

// Reads the environment and asks for the active device at each call.
void memo_hit_select_matmul_config(benchmark::State& state) {
  const ActiveDevice active("cpu");
  for (auto _ : state) benchmark::DoNotOptimize(select_matmul_config(512, 512, 512));
}
BENCHMARK(memo_hit_select_matmul_config);

void decision_without_memo(benchmark::State& state) {
  const auto& profile = device_profile(Device{});
  const KernelSelector selector;
  const auto problem = conv2d_problem();
  for (auto _ : state) benchmark::DoNotOptimize(selector.explain(problem, profile));
}
BENCHMARK(decision_without_memo);

void find_among_a_thousand_records(benchmark::State& state) {
  const auto key = [](std::size_t number) {
    return TuningKey{"Some Device", "driver 1.2", "matmul", "hash", {256, number}, "float32"};
  };
  TuningStore store;
  for (std::size_t i = 0; i < 1000; ++i) store.record(key(i), {.local_size = {8, 8}});
  const auto wanted = key(500);
  for (auto _ : state) benchmark::DoNotOptimize(store.find(wanted));
}
BENCHMARK(find_among_a_thousand_records);

}  // namespace

BENCHMARK_MAIN();
