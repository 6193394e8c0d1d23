// KernelSpec: from text to a running kernel, with the documents' examples in C++.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

const KernelSpec kScale{.name = "scale_by_two",
                        .src =
                            "__kernel void scale_by_two(__global float* x) {\n"
                            "  int gid = get_global_id(0);\n"
                            "  x[gid] *= 2.0f;\n"
                            "}\n"};

TEST(KernelSpec, AMinimalKernel) {
  for (const auto& device : test::opencl_devices()) {
    const auto program = kScale.build(device.queue);
    const auto x = Tensor::from_host(device.queue, std::vector<float>{1, 2, 3, 4, 5});
    program.run(device.queue, x.size(), nullptr, x);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 4, 6, 8, 10}));
  }
}

TEST(KernelSpec, FromParts) {
  const KernelSpec spec{
      .name = "vec_add",
      .params = {"__global const float* a", "__global const float* b", "__global float* c"},
      .body = "int gid = get_global_id(0); c[gid] = a[gid] + b[gid];",
      .preamble = std::string(PRIMITIVE_PREAMBLE)};
  const auto source = spec.to_source();
  EXPECT_NE(source.find("__kernel void vec_add(__global const float* a, __global const float* b, "
                        "__global float* c) {"),
            std::string::npos);
  EXPECT_NE(source.find("#define RELU"), std::string::npos);
  for (const auto& device : test::opencl_devices()) {
    const auto a = Tensor::from_host(device.queue, std::vector<float>{1, 2});
    const auto c = Tensor::from_shape(device.queue, {2});
    spec.build(device.context).run(device.queue, 2, nullptr, a, a, c);
    EXPECT_EQ(c.to_vector<float>(), (std::vector<float>{2, 4}));
  }
}

TEST(KernelSpec, TheSourceIsWhatIsCompiled) {
  EXPECT_EQ((KernelSpec{.name = "k", .src = "__kernel void k() {}", .preamble = ""}.to_source()),
            "#line 1\n__kernel void k() {}\n");
  NETCL_NEED_OPENCL();
  const auto kernel = kScale.build(manager().default_device("opencl").queue).kernel();
  EXPECT_EQ(kernel.to_source(), kScale.to_source());
}

TEST(KernelSpec, HalfPointersGetThePragma) {
  for (const char* type : {"__global half* x", "__global const half *x", "global half4* x"})
    EXPECT_NE((KernelSpec{.name = "k", .params = {type}, .body = ";"}.to_source().find(
                  "cl_khr_fp16 : enable")),
              std::string::npos)
        << type;
  EXPECT_EQ(
      (KernelSpec{.name = "k", .params = {"__global float* behalf"}, .body = ";", .preamble = ""}
           .to_source()
           .find("cl_khr_fp16")),
      std::string::npos);
}

TEST(KernelSpec, SeveralKernelsInOneProgram) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  const KernelSpec spec{.name = "first",
                        .src =
                            "__kernel void first(__global int* x) { x[0] = 1; }\n"
                            "__kernel void second(__global int* x) { x[0] = 2; }\n"};
  const auto program = spec.build(queue);
  EXPECT_EQ(program.kernel_names().size(), 2u);
  const auto x = Tensor::from_shape(queue, {1}, DType::int32);
  program.kernel("second")(queue, 1, 1, x);
  EXPECT_EQ(x.item(), 2);
  program.run(queue, 1, 1, x);
  EXPECT_EQ(x.item(), 1);
  EXPECT_THROW(program.kernel("third"), ArgumentError);
  EXPECT_FALSE(program.has_kernel("third"));
}

TEST(KernelSpec, BadSpecs) {
  EXPECT_THROW((KernelSpec{.name = "not a name", .src = "x"}.to_source()), ArgumentError);
  EXPECT_THROW((KernelSpec{.name = "k"}.to_source()), ArgumentError);
  EXPECT_THROW((KernelSpec{.name = "k", .src = "x", .body = "y"}.to_source()), ArgumentError);
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  EXPECT_THROW((KernelSpec{.name = "other", .src = kScale.src}.build(queue)), ArgumentError);
}

TEST(KernelSpec, NeedsAnOpenCLDevice) {
  try {
    kScale.build(manager().default_device("cpu").queue);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("needs an OpenCL device"), std::string::npos);
  }
  EXPECT_THROW(kScale.build(Context()), DeviceError);
}

TEST(KernelSpec, BuildErrorsShowTheLine) {
  NETCL_NEED_OPENCL();
  const KernelSpec spec{.name = "bad",
                        .src =
                            "__kernel void bad(__global float* x) {\n"
                            "  x[0] = undeclared_name;\n"
                            "}\n",
                        .extra_flags = {"-DSOMETHING=1"}};
  try {
    spec.build(manager().default_device("opencl").queue);
    FAIL();
  } catch (const BuildError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(">    2 |   x[0] = undeclared_name;"), std::string::npos) << text;
    EXPECT_NE(error.log().find("undeclared_name"), std::string::npos);
    EXPECT_NE(error.options().find("-DSOMETHING=1"), std::string::npos);
    EXPECT_FALSE(error.device().empty());
  }
  // The same text with the flag that makes it right: an error is not remembered for other flags.
  auto good = spec;
  good.extra_flags = {"-Dundeclared_name=1"};
  EXPECT_TRUE(good.build(manager().default_device("opencl").queue));
}

TEST(KernelSpec, TheRegistryKeepsWhatWasBuilt) {
  NETCL_NEED_OPENCL();
  auto spec = kScale;
  spec.shape_sig = "float32(1024)";
  EXPECT_FALSE(find_kernel_spec("scale_by_two", spec.shape_sig));
  spec.build(manager().default_device("opencl").queue);
  ASSERT_TRUE(find_kernel_spec("scale_by_two", spec.shape_sig));
  EXPECT_EQ(find_kernel_spec("scale_by_two", spec.shape_sig)->src, kScale.src);
  EXPECT_FALSE(find_kernel_spec("scale_by_two", "another slot"));
}

TEST(Preamble, EvaluatesOnceAndKeepsNan) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  const KernelSpec spec{.name = "macros",
                        .params = {"__global float* x", "__global int* calls"},
                        .body =
                            "#define ONCE(v) (calls[0] += 1, (v))\n"
                            "x[0] = RELU(x[0]); x[1] = MAX(x[1], 1.0f);\n"
                            "x[2] = MIN(1.0f, x[2]); x[3] = RELU(-3.0f);\n"
                            "x[4] = MAX(ONCE(2.0f), 1.0f); x[5] = ABS(ONCE(-4.0f));\n"
                            "x[6] = ADD(MUL(2.0f, 3.0f), SUB(DIV(8.0f, 2.0f), 1.0f));\n"
                            "STORE(x, 7, LOAD(x, 6)); x[8] = RELU(ONCE(5.0f));\n"
                            "x[9] = EXP(0.0f) + LOG(1.0f) + SQRT(4.0f) + TANH(0.0f);",
                        .tune = false};
  auto values = std::vector<float>(10, NAN);
  const auto x = Tensor::from_host(queue, values);
  const auto calls = Tensor::from_shape(queue, {1}, DType::int32);
  spec.build(queue).run(queue, 1, 1, x, calls);
  values = x.to_vector<float>();
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]) && std::isnan(values[2]));
  EXPECT_EQ(std::vector<float>(values.begin() + 3, values.end()),
            (std::vector<float>{0, 2, 4, 9, 9, 5, 3}));
  EXPECT_EQ(calls.item(), 3);
}

TEST(Elementwise, FloatHalfAndDouble) {
  NETCL_NEED_OPENCL();
  for (const auto& device : test::opencl_devices())
    for (const char* name : {"float", "half", "float16", "double"}) {
      const auto dtype = parse_dtype(name);
      if (dtype == DType::float64 && !device.profile().has_fp64) continue;
      const auto [spec, kernel] =
          build_elementwise_kernel(device.context, "mul_add", 2, "MUL(ADD(v0, v1), 2.0f)", name);
      for (const std::int64_t n : {1, 63, 64, 1000}) {
        const auto a = Tensor::arange(device.queue, 0, static_cast<double>(n), 1, dtype);
        const auto out = Tensor::from_shape(device.queue, {n + 1}, dtype);
        kernel(device.queue, n, nullptr, a, a, out, n);
        const auto values = out.to_vector<double>();
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_EQ(values[static_cast<std::size_t>(i)], 4.0 * static_cast<double>(i)) << name;
        ASSERT_EQ(values.back(), 0) << "the range is guarded";
      }
      // Half arithmetic is float arithmetic: nothing overflows on the way.
      const auto large = Tensor::full(device.queue, {1}, 60000, dtype);
      const auto result = Tensor::from_shape(device.queue, {1}, dtype);
      build_elementwise_kernel(device.context, "halved", 1, "(v0 + v0) / 4", name)
          .kernel(device.queue, 1, nullptr, large, result, 1);
      EXPECT_EQ(result.item(), 30000) << name;
    }
}

TEST(Elementwise, BadRequests) {
  EXPECT_THROW(PrimitiveBuilder("int32"), DtypeError);
  EXPECT_THROW(PrimitiveBuilder().elementwise_spec("k", -1, "v0"), ArgumentError);
  EXPECT_THROW(PrimitiveBuilder().elementwise_spec("k", 1, "  "), ArgumentError);
  EXPECT_THROW(PrimitiveBuilder().elementwise_spec("a b", 1, "v0"), ArgumentError);
  const WorkGroupTuner tuner(128);
  EXPECT_EQ(PrimitiveBuilder("float", tuner).elementwise_spec("k", 1, "v0").max_workgroup_size,
            128u);
  const auto without = build_elementwise_kernel(Context(), "k", 1, "v0");
  EXPECT_FALSE(without.kernel);
  EXPECT_FALSE(without.spec.to_source().empty());
}

TEST(KernelSpec, ManyThreadsCompileOnceAndRunRight) {
  NETCL_NEED_OPENCL();
  const auto queue = manager().default_device("opencl").queue;
  const auto before = program_cache_stats();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int id = 0; id < 8; ++id)
    threads.emplace_back([&, id] {
      for (int i = 0; i < 20; ++i) {
        const KernelSpec spec{
            .name = "threaded",
            .src = "__kernel void threaded(__global int* x, int v) { x[get_global_id(0)] += v; }",
            .workgroup_size = 16,
            .extra_flags = {"-DTHREADED_TEST"}};
        const auto x = Tensor::full(queue, {64}, i, DType::int32);
        spec.build(queue).run(queue, 64, nullptr, x, id);
        for (const int value : x.to_vector<int>()) wrong += value != i + id ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const auto after = program_cache_stats();
  EXPECT_LE(after.compiled + after.disk_hits - before.compiled - before.disk_hits, 2u)
      << "the program, and the library's own fill kernel at most";
}

}  // namespace
}  // namespace netcl
