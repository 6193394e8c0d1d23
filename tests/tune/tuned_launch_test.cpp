// Launches without a local size: tuned once, applied once, remembered, and right from any number of
// threads and processes.
#include <dlfcn.h>

#include <thread>

#include "cl/cl.h"
#include "netcl/runtime.h"
#include "tune/tune_fixture.h"

namespace netcl {
namespace {

using test::doubled;
using test::scale_by_two;
using tune::tuning_runs;

class TunedLaunch : public test::TuneTest {};

TEST_F(TunedLaunch, InPlaceKernelIsAppliedExactlyOnce) {
  const auto program = scale_by_two().build(queue);
  const auto x = ramp(1024);
  const auto before = tuning_runs();
  program.run(queue, x.size(), nullptr, x);
  EXPECT_EQ(tuning_runs(), before + 1);
  EXPECT_EQ(x.to_vector<float>(), doubled(1024));
  program.run(queue, x.size(), nullptr, x);
  EXPECT_EQ(tuning_runs(), before + 1) << "the second launch measured again";
  EXPECT_EQ(x.to_vector<float>(), doubled(1024, 2));
  ASSERT_EQ(default_tuning_store().size(), 1U);
  const auto [key, record] = default_tuning_store().entries().front();
  EXPECT_EQ(key.kernel, "scale_by_two");
  EXPECT_EQ(key.dtypes, "float32");
  EXPECT_EQ(key.global_size, std::vector<std::size_t>{1024});
  EXPECT_EQ(key.source_hash, program.kernel().state()->source_hash);
  EXPECT_GT(record.runtime_us, 0);
}

TEST_F(TunedLaunch, TheKernelKnowsWhatWasFound) {
  // A source that no other test has: compiled kernels are shared by all specs of the same content.
  const KernelSpec spec{.name = "known_size",
                        .src =
                            "__kernel void known_size(__global float* x) {"
                            "  x[get_global_id(0)] += 3.0f; }"};
  const auto kernel = spec.build(queue).kernel();
  EXPECT_TRUE(kernel.tuned_size().empty());
  kernel(queue, 1024, 64, ramp(1024));
  EXPECT_TRUE(kernel.tuned_size().empty()) << "a launch with a size was taken for tuning";
  kernel(queue, 1024, nullptr, ramp(1024));
  ASSERT_EQ(kernel.tuned_size().rank(), 1U);
  EXPECT_EQ(1024 % kernel.tuned_size()[0], 0U);
  Autotuner tuner(queue);
  tuner.add("known", kernel, {64, 32});
  tuner.tune_all(queue, {.show_progress = false});
  EXPECT_EQ(kernel.tuned_size(), tuner.lookup("known", {64, 32}));
}

TEST_F(TunedLaunch, ViewsAndUnalignedOffsetsAreAppliedOnce) {
  const auto program = scale_by_two().build(queue);
  const auto x = ramp(1000);
  const auto inner = x.narrow(0, 3, 96);  // 12 bytes in: never an aligned offset
  program.run(queue, 96, nullptr, inner);
  auto expected = doubled(1000, 0);
  for (std::size_t i = 3; i < 99; ++i) expected[i] *= 2;
  EXPECT_EQ(x.to_vector<float>(), expected);
}

TEST_F(TunedLaunch, KernelThatAppendsThroughACounterStaysInside) {
  // Run twice over the same counter it would write past the end of `out`.
  const KernelSpec spec{.name = "append",
                        .src = R"(__kernel void append(__global int* count, __global int* out) {
                                    out[atomic_inc(count)] = 1;
                                  })"};
  const auto count = Tensor::full(queue, {1}, 0, DType::int32);
  const auto out = Tensor::full(queue, {256}, 0, DType::int32);
  spec.build(queue).run(queue, 256, nullptr, count, out);
  EXPECT_EQ(count.to_vector<std::int32_t>(), std::vector<std::int32_t>{256});
  EXPECT_EQ(out.to_vector<std::int32_t>(), std::vector<std::int32_t>(256, 1));
}

TEST_F(TunedLaunch, OneTensorAsInputAndOutput) {
  const KernelSpec spec{.name = "add_to",
                        .src = R"(__kernel void add_to(__global const float* x, __global float* y) {
                                    y[get_global_id(0)] += x[get_global_id(0)];
                                  })"};
  const auto x = ramp(512);
  spec.build(queue).run(queue, 512, nullptr, x, x);
  EXPECT_EQ(x.to_vector<float>(), doubled(512));
}

TEST_F(TunedLaunch, DocumentedMatmulInTwoDimensions) {
  const std::int64_t M = 48, N = 32, K = 24;
  const auto a = Tensor::full(queue, {M, K}, 2.0), b = Tensor::full(queue, {K, N}, 3.0);
  const auto c = Tensor::from_shape(queue, {M, N});
  const auto program = test::matmul("matmul_tiled").build(queue);
  program.run(queue, {M, N}, nullptr, a, b, c, M, N, K);
  program.run(queue, {M, N}, nullptr, a, b, c, M, N, K);
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(M * N), 6.0F * K));
  EXPECT_EQ(default_tuning_store().size(), 1U);
}

TEST_F(TunedLaunch, ThreeDimensions) {
  const KernelSpec spec{.name = "index3", .src = R"(__kernel void index3(__global int* y) {
                                    const size_t i = get_global_id(0) + get_global_size(0) *
                                        (get_global_id(1) + get_global_size(1) * get_global_id(2));
                                    y[i] += i;
                                  })"};
  const auto y = Tensor::full(queue, {16 * 8 * 4}, 0, DType::int32);
  spec.build(queue).run(queue, {16, 8, 4}, nullptr, y);
  std::vector<std::int32_t> expected(16 * 8 * 4);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(y.to_vector<std::int32_t>(), expected);
}

TEST_F(TunedLaunch, FirstLaunchesOfEightThreadsMeasureOnce) {
  const auto program = scale_by_two().build(queue);
  const auto before = tuning_runs();
  std::vector<Tensor> tensors;
  for (int i = 0; i < 8; ++i) tensors.push_back(ramp(2048));
  queue.finish();
  std::vector<std::thread> threads;
  for (const auto& x : tensors)
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) program.run(queue, 2048, nullptr, x);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(tuning_runs(), before + 1);
  for (const auto& x : tensors) EXPECT_EQ(x.to_vector<float>(), doubled(2048, 3));
}

TEST_F(TunedLaunch, EachProblemHasItsOwnResult) {
  const auto program = scale_by_two().build(queue);
  const auto before = tuning_runs();
  const auto x = ramp(512);
  program.run(queue, 512, nullptr, x);
  program.run(queue, 256, nullptr, x);
  program.run(queue, 512, nullptr, x);
  EXPECT_EQ(tuning_runs(), before + 2);
  EXPECT_EQ(default_tuning_store().size(), 2U);
}

TEST_F(TunedLaunch, DtypeIsPartOfTheKey) {
  if (!device_profile(queue).has_fp64) GTEST_SKIP() << "the device has no double";
  KernelSpec spec{.name = "square", .src = R"(__kernel void square(__global T* x) {
                              x[get_global_id(0)] *= x[get_global_id(0)];
                            })"};
  for (const auto dtype : {DType::float32, DType::float64}) {
    spec.extra_flags = {dtype == DType::float32 ? "-DT=float" : "-DT=double"};
    const auto x = Tensor::full(queue, {256}, 3.0, dtype);
    spec.build(queue).run(queue, 256, nullptr, x);
    EXPECT_EQ(x.to_vector<double>(), std::vector<double>(256, 9.0));
  }
  const auto entries = default_tuning_store().entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].first.kernel, entries[1].first.kernel);
  EXPECT_NE(entries[0].first.dtypes, entries[1].first.dtypes);
}

TEST_F(TunedLaunch, WithoutTuningNothingIsMeasured) {
  auto spec = scale_by_two();
  spec.tune = false;
  const auto x = ramp(999);  // not a multiple of 64
  const auto before = tuning_runs();
  spec.build(queue).run(queue, 999, nullptr, x);
  spec.workgroup_size = 37;
  spec.tune = true;
  spec.build(queue).run(queue, 999, nullptr, x);  // the given size is taken as it is
  EXPECT_EQ(tuning_runs(), before);
  EXPECT_EQ(x.to_vector<float>(), doubled(999, 2));
  EXPECT_THROW(spec.build(queue).run(queue, 1000, nullptr, x), ShapeError);
}

TEST_F(TunedLaunch, GuardedKernelsAreRoundedUp) {
  const auto spec = PrimitiveBuilder("float").elementwise_spec("plus_one", 1, "v0 + 1.0f");
  const auto x = ramp(1001);
  const auto y = Tensor::full(queue, {1001}, -1.0);
  for (const WorkSize& local : {WorkSize(), WorkSize(64)}) {
    spec.build(queue).run(queue, 1001, local, x, y, 1001);
    auto expected = doubled(1001, 0);
    for (auto& value : expected) value += 1;
    EXPECT_EQ(y.to_vector<float>(), expected) << local.to_string();
  }
}

TEST_F(TunedLaunch, RequiredSizeIsTakenAsItIs) {
  const KernelSpec spec{.name = "required",
                        .src = R"(__attribute__((reqd_work_group_size(16, 1, 1)))
                                  __kernel void required(__global int* y) {
                                    y[get_global_id(0)] = get_local_size(0);
                                  })"};
  const auto y = Tensor::full(queue, {64}, 0, DType::int32);
  const auto before = tuning_runs();
  spec.build(queue).run(queue, 64, nullptr, y);
  EXPECT_EQ(y.to_vector<std::int32_t>(), std::vector<std::int32_t>(64, 16));
  EXPECT_EQ(tuning_runs(), before);
}

TEST_F(TunedLaunch, LocalMemoryOfTheCallerIsNotOverrun) {
  const KernelSpec spec{.name = "shared",
                        .src = R"(__kernel void shared(__global int* y, __local int* mine) {
                  mine[get_local_id(0)] = get_global_id(0);
                  y[get_global_id(0)] = mine[get_local_id(0)] + (int)get_local_size(0) * 0;
                })"};
  const auto y = Tensor::full(queue, {1024}, 0, DType::int32);
  const auto before = tuning_runs();
  spec.build(queue).run(queue, 1024, nullptr, y, KernelArg::local(64 * sizeof(int)));
  EXPECT_EQ(tuning_runs(), before);
  EXPECT_EQ(y.to_vector<std::int32_t>()[1023], 1023);
}

TEST_F(TunedLaunch, BadArgumentsAreErrorsOfTheLaunch) {
  const auto program = scale_by_two().build(queue);
  const auto before = default_tuning_store().size();
  EXPECT_THROW(program.run(queue, 16, nullptr), ArgumentError);
  EXPECT_THROW(program.run(queue, 16, nullptr, 3.0F), DtypeError);
  EXPECT_THROW(program.run(queue, 16, nullptr, Tensor::full(queue, {16}, 0, DType::int32)),
               DtypeError);
  EXPECT_EQ(default_tuning_store().size(), before) << "a launch that failed left a result";
  EXPECT_THROW(Kernel()(queue, 16, nullptr), ArgumentError);
  EXPECT_FALSE(program.run(queue, 0, nullptr, ramp(16)));  // nothing to do: complete
}

TEST_F(TunedLaunch, InterruptedTuningLeavesTheMemoryAlone) {
  const auto program = scale_by_two().build(queue);
  const auto x = ramp(640);
  queue.finish();
  set_interrupt_hook([] { throw Interrupted("[test] enough"); });
  EXPECT_THROW(program.run(queue, 640, nullptr, x), Interrupted);
  set_interrupt_hook(nullptr);
  EXPECT_EQ(x.to_vector<float>(), doubled(640, 0));
  program.run(queue, 640, nullptr, x);
  EXPECT_EQ(x.to_vector<float>(), doubled(640));
}

TEST_F(TunedLaunch, StoredSizesThatCannotBeLaunchedAreNotUsed) {
  const auto program = scale_by_two().build(queue);
  const auto x = ramp(320);
  const auto key = tune::key_of(*program.kernel().state(), 320, std::vector<KernelArg>{x});
  for (const std::vector<std::size_t>& local :
       {std::vector<std::size_t>{7}, std::vector<std::size_t>{std::size_t{1} << 40},
        std::vector<std::size_t>{8, 8}}) {
    TuningRecord record;
    record.local_size = local;
    default_tuning_store().record(key, record);
    tune::raise_results_generation();
    EXPECT_NO_THROW(program.run(queue, 320, nullptr, x));
  }
  EXPECT_EQ(x.to_vector<float>(), doubled(320, 3));
}

TEST_F(TunedLaunch, QueueOfAnotherContextIsAnErrorThatNamesBoth) {
  const auto devices = test::opencl_devices();
  if (devices.size() < 2) GTEST_SKIP() << "there is one OpenCL device";
  const auto program = scale_by_two().build(devices[0].queue);
  try {
    program.run(devices[1].queue, 16, nullptr, Tensor::full(devices[1].queue, {16}, 1.0));
    FAIL() << "a kernel ran in a foreign context";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find(devices[0].device_name), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(devices[1].device_name), std::string::npos);
  }
}

// netcl makes contexts of one device; users may bring others. Without the OpenCL headers, so that
// the test also builds where there are none.
Context context_of(const std::vector<DeviceHandle>& devices) {
  std::vector<_cl_device_id*> ids;
  for (const auto& device : devices) ids.push_back(device.queue.device().get());
  using Create =
      _cl_context* (*)(const std::intptr_t*, unsigned, _cl_device_id* const*, void*, void*, int*);
  void* loader = ::dlopen(cl::loader_path().c_str(), RTLD_NOW);
  if (loader == nullptr) return {};
  const auto create = reinterpret_cast<Create>(::dlsym(loader, "clCreateContext"));
  int code = 0;
  auto* context =
      create(nullptr, static_cast<unsigned>(ids.size()), ids.data(), nullptr, nullptr, &code);
  return code == 0 ? Context::wrap(context) : Context();
}

TEST_F(TunedLaunch, OtherDevicesOfTheContextGetTheirOwnBuild) {
  const auto devices = test::opencl_devices();
  if (devices.size() < 2) GTEST_SKIP() << "there is one OpenCL device";
  const auto context = context_of(devices);
  if (!context) GTEST_SKIP() << "the devices cannot share a context";
  auto spec = scale_by_two();
  spec.extra_flags = {"-DUNUSED=1", "-DOTHER=2"};
  const auto program = spec.build(context);
  for (const auto& device : context.devices()) {
    const auto other = Queue::create(context, device);
    const auto x = Tensor::full(other, {64}, 1.5);
    for (const WorkSize& local : {WorkSize(), WorkSize(16)}) program.run(other, 64, local, x);
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(64, 6.0F)) << device.name();
  }
}

TEST_F(TunedLaunch, SecondQueueOfTheContextSharesTheResult) {
  const auto program = scale_by_two().build(queue);
  const auto x = ramp(384);
  program.run(queue, 384, nullptr, x);
  queue.finish();
  const auto before = tuning_runs();
  const auto second = Queue::create(queue.context(), queue.device());
  program.run(second, 384, nullptr, x);
  second.finish();
  EXPECT_EQ(tuning_runs(), before);
  EXPECT_EQ(x.to_vector<float>(), doubled(384, 2));
}

// The parent tunes and exits in the ordinary way; the child finds the result in the file.
TEST_F(TunedLaunch, SecondProcessDoesNotMeasure) {
  const auto run = [&] {
    const auto x = ramp(4096);
    scale_by_two().build(queue).run(queue, 4096, nullptr, x);
    EXPECT_EQ(x.to_vector<float>(), doubled(4096));
  };
  if (const auto role = test::child_role()) {
    run();
    EXPECT_EQ(tuning_runs(), *role == "first" ? 1U : 0U);
    return;
  }
  const test::TempDir directory;
  const test::ScopedEnv file("NETCL_TUNING_FILE", (directory / "store.json").c_str());
  EXPECT_EQ(test::ChildProcess("first").wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(directory / "store.json")) << "lost at exit";
  EXPECT_EQ(test::ChildProcess("second").wait(), 0);
}

TEST(TunedLaunchOnCpu, SpecsNeedAnOpenClDevice) {
  test::use_own_store();
  try {
    (void)scale_by_two().build(CPUQueue());
    FAIL() << "the CPU backend has no kernels";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("needs an OpenCL device"), std::string::npos);
  }
  EXPECT_THROW(Autotuner{Device()}, DeviceError);
}

}  // namespace
}  // namespace netcl
