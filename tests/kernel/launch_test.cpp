// Arguments and sizes of launches: what is accepted, converted, and refused with which words.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cl/cl.h"
#include "kernel/driver_options.h"
#include "kernel/local_memory.h"
#include "kernel/program_cache.h"
#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    if (text.find(part) == std::string::npos) return false;
  return true;
}

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    NETCL_NEED_OPENCL();
    queue = manager().default_device("opencl").queue;
    scalars = KernelSpec{.name = "scalars",
                         .src =
                             "__kernel void scalars(__global double* out, char a, uchar b, "
                             "short c, ushort d, int e, uint f, long g, ulong h, float i) {\n"
                             "out[0]=a; out[1]=b; out[2]=c; out[3]=d; out[4]=e; out[5]=f;\n"
                             "out[6]=g; out[7]=h; out[8]=i; }",
                         .tune = false}
                  .build(queue);
    axpy = KernelSpec{.name = "axpy",
                      .src =
                          "__kernel void axpy(__global const float* x, __global float* y, "
                          "float alpha, int n) {\n"
                          "  int i = get_global_id(0); if (i < n) y[i] += alpha * x[i]; }",
                      .tune = false}
               .build(queue);
  }
  Queue queue;
  Program scalars, axpy;
};

// What another library of the process built: here netcl's own objects, seen as it would see theirs.
TEST_F(Launch, ObjectsMadeElsewhere) {
  auto* raw = reinterpret_cast<_cl_program*>(axpy.int_ptr());
  const auto program = Program::wrap(raw);
  EXPECT_EQ(program.int_ptr(), axpy.int_ptr());
  EXPECT_EQ(program.kernel_names(), std::vector<std::string>{"axpy"});
  EXPECT_EQ(program.spec().name, "axpy");
  const auto own = axpy.kernel();
  const auto kernel = Kernel::wrap(reinterpret_cast<_cl_kernel*>(own.int_ptr()), queue.device());
  EXPECT_NE(kernel.int_ptr(), own.int_ptr()) << "its arguments would be shared";
  const auto x = Tensor::full(queue, {8}, 2.0), y = Tensor::full(queue, {8}, 1.0);
  kernel(queue, 8, nullptr, x, y, 3.0, 8);
  program.run(queue, 8, 8, x, y, 1.0, 8);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 9.0F));
  if (kernel.state()->parameters_known) {
    EXPECT_EQ(error_of([&] { kernel(queue, 8, nullptr, x, 1.0, 3.0, 8); }).find("[kernel axpy"),
              0U);
  }
  EXPECT_THROW(Kernel::wrap(nullptr), ArgumentError);
  EXPECT_THROW(Program::wrap(nullptr), ArgumentError);
}

TEST_F(Launch, AProgramMadeElsewhereMustBeBuilt) {
  const auto made = cl::program_from_source(queue.context().get(), "__kernel void one() {}");
  EXPECT_TRUE(says(error_of([&] { Program::wrap(made.get()); }), {"must be built", "first"}));
  const auto outcome = cl::build(made.get(), queue.device(), "");
  ASSERT_TRUE(outcome.ok) << outcome.log;
  EXPECT_EQ(Program::wrap(made.get()).spec().src, "__kernel void one() {}");
}

TEST_F(Launch, ScalarsBecomeTheDeclaredType) {
  const auto out = Tensor::from_shape(queue, {9}, DType::float64);
  scalars.run(queue, 1, 1, out, -5, 200, -300, 60000, -70000, 4000000000u, std::int64_t{-1} << 40,
              std::uint64_t{1} << 63, 1.5);
  EXPECT_EQ(out.to_vector<double>(),
            (std::vector<double>{-5, 200, -300, 60000, -70000, 4e9, -0x1p40, 0x1p63, 1.5}));
  // Integers given as floating numbers, and the other way round.
  scalars.run(queue, 1, 1, out, 1.0, 2.0f, 3, 4, 5.0, 6, 7.0, 8, 9);
  EXPECT_EQ(out.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(Launch, ScalarsThatDoNotFitAreErrors) {
  const auto out = Tensor::from_shape(queue, {9}, DType::float64);
  const auto run = [&](auto a, auto b, auto e, auto h, auto i) {
    return error_of([&] { scalars.run(queue, 1, 1, out, a, b, 0, 0, e, 0, 0, h, i); });
  };
  EXPECT_TRUE(says(run(128, 0, 0, 0, 0), {"parameter 'a'", "char", "128"}));
  EXPECT_TRUE(says(run(0, -1, 0, 0, 0), {"parameter 'b'", "uchar", "-1"}));
  EXPECT_TRUE(says(run(0, 0, std::int64_t{1} << 31, 0, 0), {"parameter 'e'", "2147483648"}));
  EXPECT_TRUE(says(run(0, 0, 0.5, 0, 0), {"parameter 'e'", "0.5"}));
  EXPECT_TRUE(says(run(0, 0, 0, 0x1p64, 0), {"parameter 'h'"}));
  EXPECT_TRUE(says(run(0, 0, 0, 0, 1e300), {"parameter 'i'", "float"}));
  EXPECT_EQ(run(-128, 255, -2147483647 - 1, 0, INFINITY), "no error");
}

TEST_F(Launch, WrongArgumentsNameTheParameter) {
  const auto x = Tensor::from_shape(queue, {8}), y = Tensor::from_shape(queue, {8});
  const auto run = [&](auto&&... args) {
    return error_of([&] { axpy.run(queue, 8, 8, args...); });
  };
  EXPECT_TRUE(says(run(x, y, 1.0f), {"kernel axpy", "4", "3"}));
  EXPECT_TRUE(says(run(x, y, x, 8), {"parameter 'alpha'", "pointer"}));
  EXPECT_TRUE(says(run(x, 1, 1.0f, 8), {"parameter 'y'", "memory"}));
  EXPECT_TRUE(says(run(x.astype(DType::float64), y, 1, 8), {"parameter 'x'", "float", "float64"}));
  EXPECT_TRUE(says(run(x, Tensor(), 1, 8), {"empty"}));
  EXPECT_TRUE(says(run(x.to("cpu"), y, 1, 8), {"parameter 'x'", "CPU backend"}));
  EXPECT_TRUE(says(run(KernelArg::local(64), y, 1, 8), {"parameter 'x'", "local"}));
  auto lease = get_persistent_pool(queue)->allocate(64);
  EXPECT_EQ(run(x, lease, 1.0f, 8), "no error");
  lease.release();
  EXPECT_TRUE(says(run(x, lease, 1.0f, 8), {"parameter 'y'", "released"}));
  const auto matrix = Tensor::from_shape(queue, {4, 4});
  EXPECT_TRUE(says(run(matrix.transpose(), y, 1, 8), {"contiguous"}));
}

TEST_F(Launch, MemoryOfAnotherContextIsRefused) {
  const auto device = manager().default_device("opencl");
  DeviceManager other;
  const auto foreign = other.default_device("opencl").queue;
  const auto x = Tensor::from_shape(foreign, {8}), y = Tensor::from_shape(queue, {8});
  EXPECT_TRUE(
      says(error_of([&] { axpy.run(queue, 8, 8, x, y, 1, 8); }), {"parameter 'x'", "context"}));
  EXPECT_TRUE(says(error_of([&] { axpy.run(queue, 8, 8, x.buffer(), y, 1, 8); }),
                   {"parameter 'x'", "context"}));
}

TEST_F(Launch, SizesAreChecked) {
  const auto x = Tensor::from_shape(queue, {64}), y = Tensor::from_shape(queue, {64});
  const auto run = [&](const WorkSize& global, const WorkSize& local) {
    return error_of([&] { axpy.run(queue, global, local, x, y, 1, 64); });
  };
  EXPECT_TRUE(says(run(100, 64), {"multiple", "(100,)", "(64,)"}));
  EXPECT_TRUE(says(run(64, {8, 8}), {"dimensions"}));
  EXPECT_TRUE(says(run({}, 8), {"global size"}));
  EXPECT_TRUE(says(run(1 << 24, 1 << 24), {"local size"}) ||
              says(run(1 << 24, 1 << 24), {"items"}));
  EXPECT_EQ(run(0, nullptr), "no error") << "nothing to do";
  EXPECT_EQ(run({64, 1}, 8), "no error") << "a shorter local size is padded with 1";
  EXPECT_EQ(run(61, nullptr), "no error") << "a prime size is the driver's business";
  EXPECT_THROW(WorkSize({1, 2, 3, 4}), ShapeError);
  EXPECT_THROW(WorkSize(-1), ShapeError);
}

TEST_F(Launch, ViewsAtAnyOffset) {
  const auto x = Tensor::arange(queue, 0, 1000, 1, DType::float32);
  for (const std::int64_t start : {0, 1, 3, 32, 64, 977}) {
    const auto y = Tensor::full(queue, {1000}, 1);
    axpy.run(queue, 20, nullptr, x.narrow(0, start, 20), y.narrow(0, start, 20), 2.0f, 20);
    const auto values = y.to_vector<float>();
    for (std::int64_t i = 0; i < 1000; ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i)],
                i >= start && i < start + 20 ? 1 + 2 * static_cast<float>(i) : 1)
          << start << " " << i;
  }
}

TEST_F(Launch, LocalMemoryAndStructs) {
  const auto program =
      KernelSpec{.name = "reversed",
                 .src =
                     "__kernel void reversed(__global int* x, __local int* t, int4 add) {\n"
                     "  int i = get_local_id(0); t[i] = x[i];\n"
                     "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                     "  x[i] = t[get_local_size(0) - 1 - i] + add.w; }",
                 .tune = false}
          .build(queue);
  const auto x = Tensor::arange(queue, 0, 4, 1, DType::int32);
  alignas(16) const std::int32_t add[4] = {0, 0, 0, 10};
  program.run(queue, 4, 4, x, KernelArg::local(16), KernelArg::by_value(add, sizeof add));
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{13, 12, 11, 10}));
  EXPECT_TRUE(says(error_of([&] {
                     program.run(queue, 4, 4, x, KernelArg::local(0),
                                 KernelArg::by_value(add, sizeof add));
                   }),
                   {"parameter 't'", "0 bytes"}));
}

// A driver may keep the local memory of a program's first launch (docs/devices.md).
TEST(LocalMemory, MayGrowFromLaunchToLaunch) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  const auto program =
      KernelSpec{
          .name = "turned",
          .src =
              "__kernel void turned(__global int* x, __local int* t, __local int* u, int n) {\n"
              "  const int l = get_local_id(0), w = get_local_size(0);\n"
              "  for (int i = l; i < n; i += w) { t[i] = x[i]; u[i] = 1; }\n"
              "  barrier(CLK_LOCAL_MEM_FENCE);\n"
              "  for (int i = l; i < n; i += w) x[i] = t[n - 1 - i] + u[n - 1 - i]; }",
          .tune = false}
          .build(queue);
  for (const int n : {16, 1600, 7, 3000}) {
    const auto x = Tensor::arange(queue, 0, n, 1, DType::int32);
    const auto bytes = static_cast<std::size_t>(n) * sizeof(std::int32_t);
    program.run(queue, 16, 16, x, KernelArg::local(bytes), KernelArg::local(bytes), n);
    std::vector<int> expected(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] = n - i;
    EXPECT_EQ(x.to_vector<int>(), expected) << n;
  }
}

TEST(DriverOptions, OnlyOclgrindNeedsAny) {
  ExtendedDeviceProfile profile;
  profile.platform_name = "Portable Computing Language";
  EXPECT_EQ(driver_options(profile), "");
  profile.platform_name = "Oclgrind";
  EXPECT_NE(driver_options(profile).find(" -cl-opt-disable"), std::string_view::npos);
}

TEST(LocalMemory, OneArgumentFillsWhatIsFree) {
  DeviceProfile profile;
  profile.name = "llvmpipe (LLVM 21.1.8, 256 bits)";
  EXPECT_FALSE(keeps_first_local_size(profile));
  profile.name = "zink Vulkan 1.4(llvmpipe (LLVM 21.1.8, 256 bits) (MESA_LLVMPIPE))";
  EXPECT_TRUE(keeps_first_local_size(profile));

  profile.local_mem_size = 32768;
  cl::KernelLimits limits{};
  EXPECT_EQ(free_local_bytes(profile, limits), 32768u);
  limits.local_bytes = 4;
  EXPECT_EQ(free_local_bytes(profile, limits), 32768u - 128u);
  limits.local_bytes = 40000;
  EXPECT_EQ(free_local_bytes(profile, limits), 0u);

  const std::vector<KernelArg> two{KernelArg(1), KernelArg::local(100), KernelArg::local(129)};
  EXPECT_EQ(filling_bytes(two, 1, 1024), 1024u - 256u);
  EXPECT_EQ(filling_bytes(two, 2, 1024), 256u);
  EXPECT_EQ(filling_bytes(two, 1, 1100), 1024u - 256u);
  EXPECT_EQ(filling_bytes(two, 1, 256), 128u);
  EXPECT_EQ(filling_bytes(two, 2, 0), 256u);
}

TEST_F(Launch, TensorsOfASecondQueueAreOrdered) {
  const auto device = manager().default_device("opencl");
  const auto second = Queue::create(device.context, queue.device());
  for (int round = 0; round < 20; ++round) {
    auto x = Tensor::random(queue, {1 << 18}, 1);
    const auto y = Tensor::full(second, {1 << 18}, 0);
    axpy.run(second, 1 << 18, nullptr, x, y, 1.0f, 1 << 18);  // waits for the first queue
    x.copy_from(Tensor::full(queue, {1 << 18}, -1));          // and this waits for the second
    EXPECT_EQ(y.to_vector<float>(), Tensor::random(queue, {1 << 18}, 1).to_vector<float>());
  }
}

TEST_F(Launch, AnEventComesBack) {
  const auto x = Tensor::from_shape(queue, {64}), y = Tensor::from_shape(queue, {64});
  const auto event = axpy.run(queue, 64, 64, x, y, 1, 64);
  event.wait();
  EXPECT_TRUE(event.is_complete());
  EXPECT_TRUE(axpy.run(queue, 0, nullptr, x, y, 1, 64).is_complete());
}

TEST_F(Launch, ParametersAreKnown) {
  const auto& parameters = axpy.kernel().parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "x");
  EXPECT_EQ(parameters[0].type, "float*");
  EXPECT_FALSE(parameters[0].writable);
  EXPECT_TRUE(parameters[1].writable);
  EXPECT_EQ(parameters[3].address_space, "value");
  EXPECT_GT(axpy.kernel().max_work_group_size(), 0u);
  EXPECT_NE(axpy.kernel().int_ptr(), 0u);
}

}  // namespace
}  // namespace netcl
