// What memory and transfers cost: a pool hit, an upload and a download, copies and casts beside a
// plain memcpy of the same bytes on the host, all in one run.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "netcl/netcl.h"

namespace {

using namespace netcl;

void pool_hit(benchmark::State& state) {
  PersistentBufferPool pool(CPUQueue{});
  { const auto warm = pool.allocate(100'000); }
  for (auto _ : state) benchmark::DoNotOptimize(pool.allocate(100'000).host());
}
BENCHMARK(pool_hit)->ThreadRange(1, 2);

void pool_hit_on_device(benchmark::State& state) {
  const auto pool = get_persistent_pool(get_active_device().queue);
  { const auto warm = pool->allocate(100'000); }
  for (auto _ : state) benchmark::DoNotOptimize(pool->allocate(100'000).bucket_size());
}
BENCHMARK(pool_hit_on_device);

constexpr std::int64_t kElements = 1 << 24;

void set_bytes(benchmark::State& state, double per_round) {
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<double>(state.iterations()) * per_round));
}

void host_memcpy(benchmark::State& state) {
  std::vector<float> from(kElements, 1), to(kElements, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kElements * sizeof(float));
    benchmark::ClobberMemory();
  }
  set_bytes(state, 2.0 * kElements * sizeof(float));
}
BENCHMARK(host_memcpy)->Unit(benchmark::kMillisecond)->UseRealTime();

void upload(benchmark::State& state) {
  const std::vector<float> values(kElements, 1);
  for (auto _ : state) Tensor::from_host(values).wait();
  set_bytes(state, 1.0 * kElements * sizeof(float));
}
BENCHMARK(upload)->Unit(benchmark::kMillisecond)->UseRealTime();

void download(benchmark::State& state) {
  const auto tensor = Tensor::full({kElements}, 1);
  for (auto _ : state) benchmark::DoNotOptimize(tensor.to_host().data());
  set_bytes(state, 1.0 * kElements * sizeof(float));
}
BENCHMARK(download)->Unit(benchmark::kMillisecond)->UseRealTime();

// Reads and writes every element once, by a kernel.
template <class F>
void on_device(benchmark::State& state, double bytes, F&& f) {
  const auto tensor = Tensor::full({4096, 4096}, 1);
  f(tensor).wait();
  for (auto _ : state) f(tensor).wait();
  set_bytes(state, bytes * kElements);
}

void clone(benchmark::State& state) {
  on_device(state, 8, [](const Tensor& t) { return t.clone(); });
}
BENCHMARK(clone)->Unit(benchmark::kMillisecond)->UseRealTime();

void transposed_copy(benchmark::State& state) {
  on_device(state, 8, [](const Tensor& t) { return t.transpose().contiguous(); });
}
BENCHMARK(transposed_copy)->Unit(benchmark::kMillisecond)->UseRealTime();

void cast_to_half(benchmark::State& state) {
  on_device(state, 6, [](const Tensor& t) { return t.astype(DType::float16); });
}
BENCHMARK(cast_to_half)->Unit(benchmark::kMillisecond)->UseRealTime();

void random_uniform(benchmark::State& state) {
  on_device(state, 4, [](const Tensor& t) { return Tensor::random(t.shape(), 1); });
}
BENCHMARK(random_uniform)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
