// Users' primitives and expressions inside of fused kernels, forward and backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "netcl/autograd.h"
#include "netcl/jit.h"
#include "netcl/primitive.h"
#include "support/devices.h"

namespace netcl {
namespace {

using Strings = std::vector<std::string>;

void add_primitive(const std::string& name, const std::string& forward, const Strings& backward,
                   const std::string& source, bool fusible = true) {
  register_primitive(
      {name, [=](const PrimitiveArgs&, const PrimitiveAttributes&) { return forward; },
       [=](const PrimitiveArgs&, const std::string&, const PrimitiveAttributes&,
           const std::string&) { return backward; },
       static_cast<int>(backward.size()), fusible, source},
      true);
}

// Two that define the same names in different ways, and names that kernels have anyway.
Tensor mixed(const Tensor& x, const Tensor& z) {
  const auto first = call_primitive("fused_first", {x, z});
  const auto second = call_primitive("fused_second", {first * 2.0, 3.0});
  return elementwise_binary(second, z, "v0 * 0.5 + RELU(v1)") - 1.0;
}

class PrimitiveFusion : public testing::Test {
 protected:
  void SetUp() override {
    add_primitive("fused_first", "OWN(x0, x1)", {"dy * x1", "dy * x0"},
                  "#define n 1.0f\n#define OWN(a, b) ((a) * (b) * n)");
    add_primitive("fused_second", "OWN(x0, x1)", {"dy", "dy"},
                  "float i(float t0) { return t0; }\n#define OWN(a, b) (i(a) + (b))");
  }
  void TearDown() override {
    unregister_primitive("fused_first");
    unregister_primitive("fused_second");
  }
};

TEST_F(PrimitiveFusion, is_one_kernel_with_the_same_values) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::random(queue, {7, 33}, 1, Distribution::normal);
    const auto z = Tensor::random(queue, {7, 33}, 2, Distribution::normal);
    const auto expected = mixed(x, z).to_vector<float>();
    const auto before = fusion_stats();
    const auto actual = jit(mixed)(x, z).to_vector<float>();
    const auto after = fusion_stats();
    EXPECT_EQ(after.launches - before.launches, 1u);
    EXPECT_EQ(after.fallbacks - before.fallbacks, 0u);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-5) << i;
  });
}

TEST_F(PrimitiveFusion, gradients_are_the_same) {
  test::on_every_device([](const Queue& queue) {
    auto x = Tensor::random(queue, {40}, 1, Distribution::normal);
    auto z = Tensor::random(queue, {40}, 2, Distribution::normal);
    x.set_requires_grad();
    z.set_requires_grad();
    const auto gradients = [&] {
      Tape tape;
      return tape.gradient(ops::sum(mixed(x, z)), {x, z});
    };
    const auto expected = gradients();
    std::vector<Tensor> actual;
    {
      const FusionScope scope;
      actual = gradients();
    }
    for (std::size_t k = 0; k < 2; ++k) {
      const auto a = actual[k].to_vector<float>(), e = expected[k].to_vector<float>();
      for (std::size_t i = 0; i < e.size(); ++i) ASSERT_NEAR(a[i], e[i], 1e-5) << k << ", " << i;
    }
  });
}

// Numbers in the place of tensors reach the gradients too.
TEST_F(PrimitiveFusion, numbers_of_element_wise_ops_in_gradients) {
  test::on_every_device([](const Queue& queue) {
    auto x = Tensor::full(queue, {5}, 2);
    x.set_requires_grad();
    const FusionScope scope;
    Tape tape;
    const auto y = ops::pow(3.0, x * 2.0) / 4.0 + call_primitive("fused_first", {5.0, x});
    const auto dx = tape.gradient(ops::sum(y), {x})[0].to_vector<float>();
    for (const float value : dx) EXPECT_NEAR(value, 81 * 2 * std::log(3.0) / 4 + 5, 1e-3);
  });
}

TEST_F(PrimitiveFusion, leaves_out_those_that_do_not_want) {
  add_primitive("fused_never", "x0 + 1", {"dy"}, "", false);
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {5}, 2);
    const auto explanation =
        explain([](const Tensor& t) { return call_primitive("fused_never", {t * 2.0}) * 2.0; }, x);
    for (const auto& group : explanation.groups)
      EXPECT_EQ(std::count(group.ops.begin(), group.ops.end(), "fused_never"), 0);
  });
  unregister_primitive("fused_never");
}

}  // namespace
}  // namespace netcl
