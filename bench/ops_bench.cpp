// Rates of the main ops on the OpenCL device and on the CPU backend, in one run: GFLOP/s of
// products and convolutions, GB/s of what memory bounds. Usage: bench_ops [seconds per line,
// default 0.3]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "netcl/netcl.h"

namespace {

using netcl::Queue, netcl::Tensor;
using Clock = std::chrono::steady_clock;

// The median time of a call in seconds: batches of calls, each ended by a wait.
double seconds_of(const Queue& queue, const std::function<void()>& call, double budget) {
  call();
  queue.finish();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - start).count() < budget) {
    const auto begin = Clock::now();
    call();
    queue.finish();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

struct Line {
  const char* name;
  double work;  // operations or bytes
  const char* unit;
  std::function<std::function<void()>(const Queue&)> prepare;
};

Line matmul_line(const char* name, std::int64_t M, std::int64_t N, std::int64_t K) {
  return {name, 2.0 * static_cast<double>(M * N * K), "GFLOP/s", [=](const Queue& queue) {
            const auto a = Tensor::random(queue, {M, K}, 1), b = Tensor::random(queue, {K, N}, 2);
            return [=] { netcl::ops::matmul(a, b); };
          }};
}

Line conv_line(const char* name, std::int64_t C, std::int64_t size, std::int64_t filters,
               std::int64_t filter, std::int64_t stride) {
  const auto out = (size + 2 * (filter / 2) - filter) / stride + 1;
  const double work = 2.0 * 8 * static_cast<double>(filters * C * filter * filter * out * out);
  return {name, work, "GFLOP/s", [=](const Queue& queue) {
            const auto x = Tensor::random(queue, {8, C, size, size}, 1);
            const auto w = Tensor::random(queue, {filters, C, filter, filter}, 2);
            const netcl::ops::Conv2dOptions options{{stride, stride}, {filter / 2, filter / 2}};
            return [=] { netcl::ops::conv2d(x, w, {}, options); };
          }};
}

std::vector<Line> lines() {
  constexpr std::int64_t n = 1 << 24;
  return {
      matmul_line("matmul 128", 128, 128, 128),
      matmul_line("matmul 512", 512, 512, 512),
      matmul_line("matmul 1024", 1024, 1024, 1024),
      matmul_line("matmul 1x1024x1024", 1, 1024, 1024),
      conv_line("conv2d 8x64x56 k64 3x3", 64, 56, 64, 3, 1),
      conv_line("conv2d 8x64x56 k256 1x1", 64, 56, 256, 1, 1),
      conv_line("conv2d 8x3x224 k64 7x7 s2", 3, 224, 64, 7, 2),
      {"add 16M", 12.0 * n, "GB/s",
       [](const Queue& queue) {
         const auto a = Tensor::random(queue, {n}, 1), b = Tensor::random(queue, {n}, 2);
         return [=] { netcl::ops::add(a, b); };
       }},
      {"sum 16M", 4.0 * n, "GB/s",
       [](const Queue& queue) {
         const auto a = Tensor::random(queue, {n}, 1);
         return [=] { netcl::ops::sum(a); };
       }},
      {"softmax 4096x1000", 8.0 * 4096 * 1000, "GB/s",
       [](const Queue& queue) {
         const auto a = Tensor::random(queue, {4096, 1000}, 1);
         return [=] { netcl::ops::softmax(a); };
       }},
      {"layer_norm 4096x768", 8.0 * 4096 * 768, "GB/s",
       [](const Queue& queue) {
         const auto a = Tensor::random(queue, {4096, 768}, 1), w = Tensor::random(queue, {768}, 2);
         return [=] { netcl::ops::layer_norm(a, w, w); };
       }},
      {"relu of 16 elements", 1e9, "calls/s",
       [](const Queue& queue) {
         const auto a = Tensor::random(queue, {16}, 1);
         return [=] { netcl::ops::relu(a); };
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 0.3;
  const auto device = netcl::manager().default_device();
  const auto cpu = netcl::manager().default_device("cpu");
  std::printf("%-28s %14s %14s  (%s; CPU backend)\n", "", device.backend.c_str(), "cpu",
              device.device_name.c_str());
  for (const auto& line : lines()) {
    std::printf("%-28s", line.name);
    for (const auto* one : {&device, &cpu}) {
      const auto seconds = seconds_of(one->queue, line.prepare(one->queue), budget);
      std::printf(" %14.1f", line.work / seconds * 1e-9);
      std::fflush(stdout);
    }
    std::printf("  %s\n", line.unit);
  }
  return 0;
}
