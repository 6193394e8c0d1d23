// What a launch through netcl costs beside the bare OpenCL calls: 2,000 launches of a kernel over
// 16 elements and one wait at the end. Prints one JSON line; medians of interleaved repetitions,
// because machines change their speed while one measures.
//
//   bench_launch [repetitions]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "cl/cl.h"
#include "kernel/launch.h"
#include "netcl/device.h"
#include "netcl/kernel.h"
#include "netcl/tensor.h"
#include "tune/measure.h"

namespace {

using namespace netcl;
using Clock = std::chrono::steady_clock;

constexpr int kLaunches = 2000;
constexpr std::size_t kItems = 16;

double microseconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

KernelSpec axpy(const std::string& name) {
  KernelSpec spec{.name = name};
  spec.params = {"__global const float* x", "__global float* y", "float a", "int n"};
  spec.body = "  const int i = get_global_id(0);\n  if (i < n) y[i] += a * x[i];";
  return spec;
}

void launch_bare(const Queue& queue, const Kernel& kernel, const Tensor& x, const Tensor& y) {
  auto* function = kernel.state()->kernel.get();
  auto *in = x.buffer().get(), *out = y.buffer().get();
  const float a = 1e-6F;
  const int n = kItems;
  const std::size_t global = kItems, local = kItems;
  for (int i = 0; i < kLaunches; ++i) {
    cl::set_argument(function, 0, sizeof in, &in);
    cl::set_argument(function, 1, sizeof out, &out);
    cl::set_argument(function, 2, sizeof a, &a);
    cl::set_argument(function, 3, sizeof n, &n);
    cl::enqueue(queue.get(), function, 1, &global, &local, nullptr);
  }
  queue.finish();
}

void launch_netcl(const Queue& queue, const Kernel& kernel, const WorkSize& local, const Tensor& x,
                  const Tensor& y) {
  for (int i = 0; i < kLaunches; ++i) kernel(queue, kItems, local, x, y, 1e-6F, int{kItems});
  queue.finish();
}

void run_program(const Queue& queue, const Program& program, const Tensor& x, const Tensor& y) {
  for (int i = 0; i < kLaunches; ++i) program.run(queue, kItems, nullptr, x, y, 1e-6F, int{kItems});
  queue.finish();
}

struct FirstRun {
  double once_ms;    // the very first: also reads the tuning file and makes the tuner's queue
  double search_ms;  // the search that every new problem pays, median
};

// The first launch without a local size, of a kernel that the driver has already compiled for the
// sizes in question (drivers for processors compile per size, which is not netcl's time).
FirstRun first_tuned_run(const Queue& queue, const Tensor& x, const Tensor& y, int repetitions) {
  const auto kernel = axpy("launch_bench_first").build(queue).kernel();
  for (std::size_t local = 1; local <= kItems; local *= 2)
    kernel(queue, kItems, local, x, y, 1e-6F, int{kItems}).wait();
  const std::vector<KernelArg> args{x, y, 1e-6F, int{kItems}};
  enqueue_kernel(queue, *kernel.state(), kItems, {}, args).wait();
  queue.finish();
  const double once = microseconds([&] {
    kernel(queue, kItems, nullptr, x, y, 1e-6F, int{kItems});
    queue.finish();
  });
  std::vector<double> searches;
  for (int i = 0; i < repetitions; ++i)
    searches.push_back(microseconds([&] {
      tune::measure({.queue = queue,
                     .kernel = *kernel.state(),
                     .policy = kernel.policy(),
                     .global = kItems,
                     .args = args,
                     .is_brief = true});
    }));
  return {once / 1e3, median(searches) / 1e3};
}

int run(int repetitions) {
  const auto device = manager().find_device("opencl");
  if (!device) {
    std::puts("{\"bench\": \"launch\", \"skipped\": \"there is no OpenCL device\"}");
    return 0;
  }
  const auto& queue = device->queue;
  const auto x = Tensor::full(queue, {kItems}, 1.0), y = Tensor::full(queue, {kItems}, 1.0);
  const auto first = first_tuned_run(queue, x, y, repetitions);
  const auto program = axpy("launch_bench").build(queue);
  const auto kernel = program.kernel();
  std::vector<double> bare, given, tuned, by_program;
  for (int i = 0; i < repetitions; ++i) {
    bare.push_back(microseconds([&] { launch_bare(queue, kernel, x, y); }) / kLaunches);
    given.push_back(microseconds([&] { launch_netcl(queue, kernel, kItems, x, y); }) / kLaunches);
    tuned.push_back(microseconds([&] { launch_netcl(queue, kernel, nullptr, x, y); }) / kLaunches);
    by_program.push_back(microseconds([&] { run_program(queue, program, x, y); }) / kLaunches);
  }
  std::printf(
      "{\"bench\": \"launch\", \"device\": \"%s\", \"launches\": %d, \"repetitions\": %d, "
      "\"bare_us\": %.3f, \"kernel_us\": %.3f, \"kernel_ratio\": %.3f, \"tuned_us\": %.3f, "
      "\"tuned_ratio\": %.3f, \"program_run_us\": %.3f, \"program_run_ratio\": %.3f, "
      "\"first_tuned_run_ms\": %.3f, \"search_ms\": %.3f}\n",
      device->device_name.c_str(), kLaunches, repetitions, median(bare), median(given),
      median(given) / median(bare), median(tuned), median(tuned) / median(bare), median(by_program),
      median(by_program) / median(bare), first.once_ms, first.search_ms);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 31;
  return run(std::max(repetitions, 1));
}
