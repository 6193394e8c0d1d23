// What fusion saves: a chain of six element-wise ops, its reduction, and its gradient, each fused
// and op by op, against a copy (stream bandwidth) measured in the same run.
// Usage: bench_fusion [millions of elements, default 16] [seconds per line, default 1]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "netcl/netcl.h"

namespace {

using netcl::Queue, netcl::Tensor;
using Clock = std::chrono::steady_clock;

// The best of several calls, each ended by a wait: other work on the machine only adds time.
double seconds_of(const Queue& queue, const std::function<void()>& call, double budget) {
  call();
  queue.finish();
  double best = 1e30;
  const auto start = Clock::now();
  for (int i = 0; i < 5 || std::chrono::duration<double>(Clock::now() - start).count() < budget;
       ++i) {
    const auto begin = Clock::now();
    call();
    queue.finish();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

Tensor chain(const Tensor& a, const Tensor& b, const Tensor& c) {
  return netcl::ops::relu((a * b + c) * 1.5 - a) + 0.25;
}

void measure(const netcl::DeviceHandle& device, std::int64_t n, double budget) {
  const auto& queue = device.queue;
  const auto a = Tensor::random(queue, {n}, 1), b = Tensor::random(queue, {n}, 2),
             c = Tensor::random(queue, {n}, 3), d = Tensor::random(queue, {n}, 4);
  const double bytes = 4.0 * static_cast<double>(n);
  std::printf("%s (%s), %lld elements\n", device.backend.c_str(), device.device_name.c_str(),
              static_cast<long long>(n));
  const auto copy = seconds_of(
      queue, [&] { d.copy_from(a); }, budget);
  const double stream = 2 * bytes / copy;
  std::printf("  %-34s %9.2f ms %8.2f GB/s\n", "copy", copy * 1e3, stream * 1e-9);
  const auto compare = [&](const char* name, double moved, const std::function<void()>& call) {
    const auto apart = seconds_of(queue, call, budget);
    const auto fused = seconds_of(queue, netcl::jit(call), budget);
    std::printf("  %-34s %9.2f ms op by op %9.2f ms fused: %5.2f times, %5.1f %% of stream\n", name,
                apart * 1e3, fused * 1e3, apart / fused, 100 * moved / fused / stream);
  };
  Tensor y;
  compare("six ops of three inputs", 4 * bytes, [&] { y = chain(a, b, c); });
  compare("six ops and their mean", 3 * bytes, [&] { y = netcl::ops::mean(chain(a, b, c)); });
  auto p = Tensor::random(queue, {n}, 5), q = Tensor::random(queue, {n}, 6);
  p.set_requires_grad();
  q.set_requires_grad();
  std::vector<Tensor> grads;
  compare("forward, and backward to two", 8 * bytes, [&] {
    netcl::Tape tape;
    y = netcl::ops::mean(chain(p, q, c));
    grads = tape.gradient(y, {p, q});
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto n = static_cast<std::int64_t>((argc > 1 ? std::atof(argv[1]) : 16) * (1 << 20));
  const double budget = argc > 2 ? std::atof(argv[2]) : 1;
  const auto device = netcl::manager().default_device();
  if (argc <= 3) measure(device, n, budget);
  if (argc > 3 || device.backend != "cpu")
    measure(netcl::manager().default_device("cpu"), n, budget);
  return 0;
}
