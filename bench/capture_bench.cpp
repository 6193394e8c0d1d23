// What the host spends on a step of 200 small launches: called op by op, replayed by CapturedStep,
// and as a bare loop over clEnqueueNDRangeKernel. The time of a step includes the device's, which
// is the same in all three: 16 elements per launch. `ns_per_launch` is the figure to look at.
//
//   bench_capture [--benchmark_min_time=2] [--benchmark_repetitions=5]
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "cl/cl.h"
#include "kernel/program_cache.h"
#include "netcl/netcl.h"

namespace {

using namespace netcl;

constexpr int kLaunches = 200;
constexpr std::int64_t kItems = 16;

Queue queue_or_skip(benchmark::State& state) {
  const auto device = manager().find_device("opencl");
  if (!device) state.SkipWithError("there is no OpenCL device");
  return device ? device->queue : Queue();
}

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Runs `enqueue` and waits, again and again.
template <class Enqueue>
void measure(benchmark::State& state, const Queue& queue, Enqueue&& enqueue) {
  using Clock = std::chrono::steady_clock;
  double host = 0;
  for (int i = 0; i < 3; ++i) enqueue();
  queue.finish();
  const auto start = Clock::now();
  for (auto _ : state) {
    const double before = thread_ns();
    enqueue();
    host += thread_ns() - before;
    queue.finish();
  }
  const double total = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  const double launches = static_cast<double>(state.iterations()) * kLaunches;
  state.counters["host_ns"] = host / launches;
  state.counters["total_ns"] = total / launches;
}

std::vector<Tensor> chain(const std::vector<Tensor>& inputs) {
  auto x = inputs[0];
  for (int i = 0; i < kLaunches; ++i) x = ops::add(x, 1.0);
  return {x};
}

void eager(benchmark::State& state) {
  const auto queue = queue_or_skip(state);
  if (!queue) return;
  const std::vector<Tensor> inputs = {Tensor::full(queue, {kItems}, 1.0)};
  measure(state, queue, [&] { chain(inputs); });
}

void replay(benchmark::State& state) {
  const auto queue = queue_or_skip(state);
  if (!queue) return;
  const std::vector<Tensor> inputs = {Tensor::full(queue, {kItems}, 1.0)};
  CapturedStep step(chain);
  measure(state, queue, [&] { step(inputs); });
}

void bare(benchmark::State& state) {
  const auto queue = queue_or_skip(state);
  if (!queue) return;
  KernelSpec spec{.name = "capture_bench"};
  spec.params = {"__global const float* x", "__global float* y", "float a", "int n"};
  spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] = x[i] + a;";
  const auto program = spec.build(queue);
  const auto x = Tensor::full(queue, {kItems}, 1.0), y = Tensor::empty(queue, {kItems});
  std::vector<Ref<_cl_kernel>> kernels;
  auto *in = x.buffer().get(), *out = y.buffer().get();
  const float a = 1;
  const int n = kItems;
  for (int i = 0; i < kLaunches; ++i) {
    kernels.push_back(cl::create_kernel(program.kernel().state()->program.get(), spec.name));
    cl::set_argument(kernels.back().get(), 0, sizeof in, &in);
    cl::set_argument(kernels.back().get(), 1, sizeof out, &out);
    cl::set_argument(kernels.back().get(), 2, sizeof a, &a);
    cl::set_argument(kernels.back().get(), 3, sizeof n, &n);
    std::swap(in, out);
  }
  const std::size_t global = kItems;
  measure(state, queue, [&] {
    for (const auto& kernel : kernels)
      cl::enqueue(queue.get(), kernel.get(), 1, &global, &global, nullptr);
  });
}

BENCHMARK(eager)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(replay)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(bare)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
