// What the calling thread spends on one eager op call: small calls in rounds of 200 with a wait
// after each round, beside a bare loop over clSetKernelArg and clEnqueueNDRangeKernel. `host_ns` is
// processor time of the thread per call, `total_ns` the time until the device is done.
//
//   bench_dispatch [device] [--benchmark_filter=...] [--benchmark_repetitions=5]
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "cl/cl.h"
#include "kernel/program_cache.h"
#include "netcl/netcl.h"

namespace {

using namespace netcl;

constexpr int kCalls = 200;
constexpr std::int64_t kItems = 16;

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void measure(benchmark::State& state, const Queue& queue, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  double host = 0, total = 0;
  call();
  queue.finish();
  for (auto _ : state) {
    const auto start = Clock::now();
    const double before = thread_ns();
    for (int i = 0; i < kCalls; ++i) call();
    host += thread_ns() - before;
    queue.finish();
    total += std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }
  const double calls = static_cast<double>(state.iterations()) * kCalls;
  state.counters["host_ns"] = host / calls;
  state.counters["total_ns"] = total / calls;
}

void bare(benchmark::State& state, const Queue& queue) {
  KernelSpec spec{.name = "dispatch_bench"};
  spec.params = {"__global const float* x", "__global float* y", "float a", "int n"};
  spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] = x[i] + a;";
  const auto kernel = spec.build(queue).kernel();
  const auto x = Tensor::full(queue, {kItems}, 1.0), y = Tensor::empty(queue, {kItems});
  auto* function = kernel.state()->kernel.get();
  auto *in = x.buffer().get(), *out = y.buffer().get();
  const float a = 1;
  const int n = kItems;
  const std::size_t global = kItems;
  measure(state, queue, [&] {
    cl::set_argument(function, 0, sizeof in, &in);
    cl::set_argument(function, 1, sizeof out, &out);
    cl::set_argument(function, 2, sizeof a, &a);
    cl::set_argument(function, 3, sizeof n, &n);
    cl::enqueue(queue.get(), function, 1, &global, &global, nullptr);
  });
}

using Call = std::function<Tensor()>;

void add(const Queue& queue, const std::string& name, Call call) {
  benchmark::RegisterBenchmark(
      name.c_str(), [queue, call](benchmark::State& state) { measure(state, queue, call); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_calls(const Queue& queue) {
  const auto random = [&](const Shape& shape) { return Tensor::random(queue, shape, 1); };
  const auto x = random({kItems}), y = random({kItems});
  add(queue, "add", [=] { return ops::add(x, y); });
  add(queue, "add_number", [=] { return ops::add(x, 1.0); });
  add(queue, "relu", [=] { return ops::relu(x); });
  const auto grid = random({8, 16, 4}), column = random({16, 1});
  add(queue, "add_broadcast", [=] { return ops::add(grid, column); });
  const auto a = random({8, 8}), b = random({8, 8}), bias = random({8});
  add(queue, "matmul_8", [=] { return ops::matmul(a, b); });
  add(queue, "linear_8", [=] { return ops::linear(a, b, bias, ops::Activation::relu); });
  const auto c = random({64, 64}), d = random({64, 64});
  add(queue, "matmul_64", [=] { return ops::matmul(c, d); });
  add(queue, "softmax", [=] { return ops::softmax(a); });
  add(queue, "sum", [=] { return ops::sum(a); });
  add(queue, "layer_norm", [=] { return ops::layer_norm(a, bias, bias); });
  const auto image = random({1, 8, 4, 4}), filter = random({8, 8, 3, 3});
  add(queue, "conv2d", [=] { return ops::conv2d(image, filter, {}, {.padding = {1, 1}}); });
  add(queue, "transpose_copy", [=] { return a.transpose().contiguous(); });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto device = manager().find_device(argc > 1 ? argv[1] : "opencl");
  if (!device) {
    std::puts("skipped: there is no such device");
    return 0;
  }
  const auto queue = device->queue;
  if (!queue.is_cpu())
    benchmark::RegisterBenchmark("bare", [queue](benchmark::State& state) { bare(state, queue); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  add_calls(queue);
  benchmark::RunSpecifiedBenchmarks();
}
