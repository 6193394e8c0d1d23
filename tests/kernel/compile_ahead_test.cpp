// Launches that are kept instead of made, and who is told that the driver had to compile.
#include "netcl/compile_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/compile_ahead.h"
#include "netcl/netcl.h"
#include "support/devices.h"
#include "support/scoped_env.h"

namespace netcl {
namespace {

// Every launch writes its mark behind those before it.
constexpr const char* kMarks =
    "__kernel void one(__global int* to) { if (get_global_id(0) == 0) to[++to[0]] = 1; }"
    "__kernel void two(__global int* to) { if (get_global_id(0) == 0) to[++to[0]] = 2; }";

class CompileAhead : public testing::Test {
 protected:
  void SetUp() override {
    NETCL_NEED_OPENCL();
    queue = manager().default_device("opencl").queue;
    marks = KernelSpec{.name = "one", .src = kMarks, .tune = false}.build(queue);
    to = Tensor::from_shape(queue, {8}, DType::int32);
  }
  void launch(const char* kernel, std::int64_t local) {
    marks.kernel(kernel)(queue, WorkSize(4), WorkSize(local), to);
  }
  std::vector<std::int32_t> written() const {
    const auto all = to.to_vector<std::int32_t>();
    return {all.begin() + 1, all.begin() + 1 + all[0]};
  }
  Queue queue;
  Program marks;
  Tensor to;
};

using Marks = std::vector<std::int32_t>;

TEST_F(CompileAhead, LaunchesAreKeptAndMadeFromTheEnd) {
  {
    WithheldLaunches withheld;
    launch("one", 1);
    launch("two", 1);
    EXPECT_EQ(written(), Marks{});
    EXPECT_EQ(withheld.launch(), 2u);
    EXPECT_EQ(written(), (Marks{2, 1}));
    EXPECT_EQ(withheld.launch(), 0u);
  }
  launch("one", 1);
  EXPECT_EQ(written(), (Marks{2, 1, 1}));
}

TEST_F(CompileAhead, OnlyOneForEachKernelAndLocalSize) {
  WithheldLaunches withheld;
  for (int i = 0; i < 3; ++i) launch("one", 1);
  for (int i = 0; i < 3; ++i) launch("one", 2);
  EXPECT_EQ(withheld.launch(), 2u);
  EXPECT_EQ(written(), (Marks{1, 1}));
}

TEST_F(CompileAhead, NothingIsMadeOfWhatNobodyAskedFor) {
  {
    const WithheldLaunches withheld;
    launch("one", 1);
  }
  EXPECT_EQ(written(), Marks{});
}

TEST_F(CompileAhead, OneAtATime) {
  const WithheldLaunches withheld;
  EXPECT_THROW(WithheldLaunches(), Error);
  launch("one", 1);  // still kept: the refused one has changed nothing
  EXPECT_EQ(written(), Marks{});
}

// A whole step of ops without results, as the second process makes it, and then with them.
TEST_F(CompileAhead, OpsGoThroughWithoutComputing) {
  const auto a = Tensor::random(queue, {20, 30}, 1), b = Tensor::random(queue, {30, 40}, 2);
  const auto step = [&] { return ops::sum(ops::relu(ops::matmul(a, b))).item(); };
  {
    WithheldLaunches withheld;
    step();
    EXPECT_GT(withheld.launch(), 0u);
  }
  double expected = 0;
  const auto x = a.to_vector<float>(), z = b.to_vector<float>();
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < 40; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 30; ++k) sum += double{x[i * 30 + k]} * z[k * 40 + j];
      expected += std::max(sum, 0.0);
    }
  EXPECT_NEAR(step(), expected, 1e-4 * expected);
}

// A fast build came out of a cache; the call is made once.
TEST_F(CompileAhead, FirstCompilationIsTold) {
  int calls = 0;
  const auto count = [&] { return ++calls, false; };
  const bool keeps = device_profile(queue).platform_name == "Portable Computing Language";
  on_first_compilation(count);
  compiling::compiled(queue.device(), 0.001);
  EXPECT_EQ(calls, 0);
  compiling::compiled(queue.device(), 10);
  EXPECT_EQ(calls, keeps ? 1 : 0);
  compiling::compiled(queue.device(), 10);
  EXPECT_EQ(calls, keeps ? 1 : 0);
  on_first_compilation(count);
  on_first_compilation(nullptr);
  compiling::compiled(queue.device(), 10);
  EXPECT_EQ(calls, keeps ? 1 : 0);
}

// While another process compiles, too, kernels are waited for once, and results are the same.
TEST_F(CompileAhead, InTurns) {
  compiling::g_in_turns = true;
  launch("two", 1);
  launch("one", 2);
  launch("two", 1);
  compiling::g_in_turns = false;
  EXPECT_EQ(written(), (Marks{2, 1, 2}));
}

TEST(CompileRole, IsWhatTheVariableSays) {
  const auto role = [](const char* text) {
    const test::ScopedEnv scope("NETCL_COMPILE_AHEAD", text);
    return compile_role();
  };
  EXPECT_EQ(role("0"), CompileRole::alone);
  EXPECT_EQ(role("1"), CompileRole::first);
  EXPECT_EQ(role("worker"), CompileRole::second);
  EXPECT_EQ(role(nullptr), CompileRole::first);
}

}  // namespace
}  // namespace netcl
