// Calls that are repeated from what an equal call launched: same results, and nothing that decides
// is overlooked.
#include "ops/recipe.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "netcl/netcl.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "support/devices.h"
#include "support/scoped_env.h"
#include "tune/results.h"

namespace netcl {
namespace {

using test::ScopedEnv;

class Recipe : public testing::Test {
 protected:
  void SetUp() override {
    NETCL_NEED_OPENCL();
    queue = test::opencl_devices().at(0).queue;
  }

  Tensor ramp(const Shape& shape, float first = 1) const {
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    std::iota(values.begin(), values.end(), first);
    return Tensor::from_host(queue, HostView(values, shape));
  }

  bool is_known(const char* op, const std::vector<Tensor>& inputs,
                const Attributes& attributes = {}) const {
    return RecipeLookup(find_op(op), queue, inputs, {}, attributes).is_known();
  }

  Queue queue;
};

std::vector<float> sums(const Tensor& a, const Tensor& b) {
  auto left = a.to_vector<float>();
  const auto right = b.to_vector<float>();
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

TEST_F(Recipe, TheThirdCallIsRepeated) {
  const auto a = ramp({7, 5}), b = ramp({7, 5}, 100);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(is_known("add", {a, b}), i >= 2);
    EXPECT_EQ(ops::add(a, b).to_vector<float>(), sums(a, b));
  }
  const auto c = ramp({7, 5}, -3), d = ramp({7, 5}, 55);
  EXPECT_TRUE(is_known("add", {c, d}));  // other memory of the same layout
  EXPECT_EQ(ops::add(c, d).to_vector<float>(), sums(c, d));
}

TEST_F(Recipe, SharedMemoryIsPartOfTheKey) {
  const auto a = ramp({11}), b = ramp({11}, 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ops::add(a, a).to_vector<float>(), sums(a, a));
  EXPECT_TRUE(is_known("add", {a, a}));
  EXPECT_FALSE(is_known("add", {a, b}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ops::add(a, b).to_vector<float>(), sums(a, b));
  EXPECT_EQ(ops::add(b, b).to_vector<float>(), sums(b, b));
}

TEST_F(Recipe, LayoutsNumbersAndTypesAreTold) {
  const auto x = ramp({6, 6});
  for (int i = 0; i < 3; ++i) {
    for (const auto& view : {x, x.transpose(), x.narrow(0, 1, 5), x.narrow(0, 0, 5)})
      EXPECT_EQ(ops::add(view, 1.5).to_vector<float>(),
                sums(view, Tensor::full(queue, view.shape(), 1.5)));
    EXPECT_EQ(ops::add(x, 2.5).to_vector<float>(), sums(x, Tensor::full(queue, x.shape(), 2.5)));
    EXPECT_EQ(ops::add(x.astype(DType::int32), 2.0).dtype(), DType::int32);
  }
}

TEST_F(Recipe, TemporaryMemoryAndSeveralLaunches) {
  const auto x = Tensor::random(queue, {2, 16, 12, 12}, 1);
  const auto w = Tensor::random(queue, {16, 16, 3, 3}, 2);
  const auto first = ops::conv2d(x, w, {}, {.padding = {1, 1}}).to_vector<float>();
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(ops::conv2d(x, w, {}, {.padding = {1, 1}}).to_vector<float>(), first);
  const auto rows = Tensor::random(queue, {300, 40}, 3);
  const auto sum = ops::sum(rows).to_vector<float>();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ops::sum(rows).to_vector<float>(), sum);
}

TEST_F(Recipe, ChecksOfValuesAreNotSkipped) {
  const auto table = ramp({4, 3});
  const auto good = Tensor::from_host(queue, HostView(std::vector<std::int64_t>{1, 2}));
  const auto bad = Tensor::from_host(queue, HostView(std::vector<std::int64_t>{1, 9}));
  for (int i = 0; i < 4; ++i) ops::embedding(good, table);
  EXPECT_THROW(ops::embedding(bad, table), Error);
}

TEST_F(Recipe, InPlaceCallsAreRepeated) {
  const auto x = ramp({9}), y = ramp({9}, 10);
  auto expected = x.to_vector<float>();
  for (int i = 0; i < 5; ++i) {
    ops::add_(x, y);
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] += 10 + static_cast<float>(k);
    EXPECT_EQ(x.to_vector<float>(), expected);
  }
}

TEST_F(Recipe, InputsThatAreComputedLaterAreNoPartOfTheCall) {
  const auto a = ramp({5, 5}), b = ramp({5, 5}, 3);
  const auto expected = ops::matmul(ops::add(a, 0.25), b).to_vector<float>();
  const auto softmax = ops::softmax(ops::add(a, 0.25)).to_vector<float>();
  for (int i = 0; i < 5; ++i) {
    const FusionScope scope;
    const auto waiting = ops::add(a, 0.25);
    EXPECT_EQ(ops::matmul(waiting, b).to_vector<float>(), expected);
    EXPECT_EQ(ops::softmax(ops::add(a, 0.25)).to_vector<float>(), softmax);
    const auto target = ops::mul(a, 1.0);
    ops::add_(target, ops::add(a, 0.25));
    EXPECT_EQ(target.to_vector<float>(), sums(a, ops::add(a, 0.25)));
  }
}

// ---- what makes recipes void

KernelSelector::Condition has_shape(const Shape& shape) {
  return [shape](const std::vector<Shape>& shapes, const ExtendedDeviceProfile&) {
    return shapes.size() == 1 && shapes[0] == shape;
  };
}

TEST_F(Recipe, ARuleIsSeenAndCodeOfUsersRunsEveryTime) {
  const auto x = ramp({3, 1087});
  for (int i = 0; i < 3; ++i) ops::relu(x);
  EXPECT_TRUE(is_known("relu", {x}));
  int runs = 0;
  register_op_kernel("relu", "COUNTED_RELU",
                     [&runs](const Queue& q, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& outputs) {
                       ++runs;
                       outputs[0].copy_from(Tensor::full(q, inputs[0].shape(), 7));
                     });
  get_kernel_selector().register_rule("elementwise", has_shape({3, 1087}), "COUNTED_RELU");
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(ops::relu(x).to_vector<float>(), std::vector<float>(3 * 1087, 7));
    EXPECT_EQ(runs, i);
  }
}

TEST_F(Recipe, ChangedKnowledgeMakesTheChoiceAnew) {
  const auto x = ramp({3, 1091});
  const auto make_known = [&] {
    for (int i = 0; i < 3; ++i) ops::relu(x);
    EXPECT_TRUE(is_known("relu", {x}));
  };
  make_known();
  tune::raise_results_generation();  // what storing results does
  EXPECT_FALSE(is_known("relu", {x}));
  make_known();
  get_kernel_selector().strike_out(device_profile(queue), "A_KERNEL_OF_NOBODY", "a test");
  EXPECT_FALSE(is_known("relu", {x}));
  make_known();
  {
    const ScopedEnv strategy("NETCL_KERNEL_STRATEGY", "portable");
    EXPECT_FALSE(is_known("relu", {x}));
    make_known();
  }
  EXPECT_TRUE(is_known("relu", {x}));  // as it was before
  get_kernel_selector().clear_cache();
  EXPECT_FALSE(is_known("relu", {x}));
}

TEST_F(Recipe, ForcedVariantsAreForced) {
  const auto x = ramp({3, 1093});
  for (int i = 0; i < 3; ++i) ops::relu(x);
  const ForcedVariant forced(find_op("relu"), "elementwise.scalar");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ops::relu(x).to_vector<float>(), x.to_vector<float>());
}

TEST_F(Recipe, OpsThatMayChangeAreNotRemembered) {
  const auto x = ramp({3, 1097});
  const OpDef copy = find_op("relu");
  for (int i = 0; i < 3; ++i) call_op(copy, {x});
  EXPECT_FALSE(RecipeLookup(copy, queue, std::vector<Tensor>{x}, {}, {}).is_known());
}

TEST_F(Recipe, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      const auto a = ramp({13, 3}, static_cast<float>(t)), b = ramp({13, 3}, 50);
      const auto expected = sums(a, b);
      for (int i = 0; i < 200; ++i) EXPECT_EQ(ops::add(a, b).to_vector<float>(), expected);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace netcl
