// Matrix products beyond the harness: messages, the compiled kernel, views, large sums.
#include <gtest/gtest.h>

#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of;

Tensor zeros(const Queue& queue, const Shape& shape, DType dtype = DType::float32) {
  return Tensor::from_shape(queue, shape, dtype);
}

TEST(Matmul, BadInputNamesTheRuleAndTheValues) {
  test::on_every_device([](const Queue& q) {
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::matmul(zeros(q, {2, 3}), zeros(q, {4, 5}));
              }),
              "[matmul] the inner sizes must be equal: 3 and 4 of (2, 3) x (4, 5)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::matmul(zeros(q, {}), zeros(q, {4, 5}));
              }),
              "[matmul] the factors must have at least one axis: () and (4, 5)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::matmul(zeros(q, {2, 3, 4}), zeros(q, {5, 4, 6}));
              }),
              "[matmul] the shapes must broadcast, equal or 1 on every axis: (2,) and (5,)");
    EXPECT_EQ(message_of<DtypeError>([&] {
                ops::matmul(zeros(q, {2, 3}), zeros(q, {3, 5}, DType::float64));
              }),
              "[matmul] the tensors must have one dtype: float32 and float64 (use astype)");
    EXPECT_EQ(message_of<DtypeError>([&] {
                ops::matmul(zeros(q, {2, 3}, DType::boolean), zeros(q, {3, 5}, DType::boolean));
              }),
              "[matmul] there is no product of bool (use astype)");
    EXPECT_EQ(message_of<ArgumentError>([&] { ops::matmul(Tensor(), Tensor()); }),
              "[matmul] the tensor must not be empty (default-made)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::linear(zeros(q, {2, 3}), zeros(q, {4, 5}));
              }),
              "[linear] x must be (..., in) and w (out, in): (2, 3) and (4, 5)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::linear(zeros(q, {2, 3}), zeros(q, {4, 3}), zeros(q, {3}));
              }),
              "[linear] the bias must have one element per output, (4,): (3,)");
    const auto with_residual = [&](const Shape& shape, DType dtype = DType::float32) {
      return [&q, residual = zeros(q, shape, dtype)] {
        ops::linear(zeros(q, {2, 3}), zeros(q, {4, 3}), {}, ops::Activation::relu, residual);
      };
    };
    // Nothing broadcasts.
    EXPECT_EQ(message_of<ShapeError>(with_residual({2, 3})),
              "[linear] the residual must have the result's shape, (2, 4): (2, 3)");
    EXPECT_EQ(message_of<ShapeError>(with_residual({4})),
              "[linear] the residual must have the result's shape, (2, 4): (4,)");
    EXPECT_EQ(message_of<ShapeError>(with_residual({1, 2, 4})),
              "[linear] the residual must have the result's shape, (2, 4): (1, 2, 4)");
    EXPECT_EQ(message_of<DtypeError>(with_residual({2, 4}, DType::float16)),
              "[linear] the tensors must have one dtype: float32 and float16 (use astype)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::bias_add(zeros(q, {2, 3}), zeros(q, {4}));
              }),
              "[bias_add] the bias must be (C,) for x (..., C): (4,) and (2, 3)");
  });
}

TEST(Matmul, TensorsOfTwoDevicesAreRefused) {
  NETCL_NEED_OPENCL();
  const auto here = zeros(manager().default_device("cpu").queue, {2, 2});
  const auto there = zeros(test::opencl_devices()[0].queue, {2, 2});
  EXPECT_THROW(ops::matmul(here, there), DeviceError);
}

TEST(Matmul, BiasAddFollowsTheChannels) {
  test::on_every_device([](const Queue& q) {
    const auto b = Tensor::arange(q, 1, 4, 1, DType::float32);
    EXPECT_EQ(ops::bias_add(zeros(q, {2, 3}), b).to_vector<float>(),
              (std::vector<float>{1, 2, 3, 1, 2, 3}));
    EXPECT_EQ(ops::bias_add(zeros(q, {1, 3, 1, 2}), b).to_vector<float>(),
              (std::vector<float>{1, 1, 2, 2, 3, 3}));
  });
}

TEST(Linear, TheResidualMayBeTheInputOrAView) {
  test::on_every_device([](const Queue& q) {
    const auto x =
        Tensor::from_host(q, HostView(std::vector<float>{1, -2, 3, 4, 5, -6}, Shape{2, 3}));
    const auto w =
        Tensor::from_host(q, HostView(std::vector<float>{2, 0, 0, 0, 2, 0, 0, 0, 2}, Shape{3, 3}));
    const auto b = Tensor::full(q, {3}, 1);
    EXPECT_EQ(ops::linear(x, w, b, ops::Activation::relu, x).to_vector<float>(),
              (std::vector<float>{4, 0, 10, 13, 16, 0}));
    const auto residual = Tensor::arange(q, 0, 6, 1, DType::float32).view(Shape{3, 2}).transpose();
    EXPECT_EQ(ops::linear(x, w, {}, ops::Activation::none, residual).to_vector<float>(),
              (std::vector<float>{2, -2, 10, 9, 13, -7}));
  });
}

TEST(Matmul, ACompiledKernelChecksWhatItWasBuiltFor) {
  NETCL_NEED_OPENCL();
  const auto queue = test::opencl_devices()[0].queue;
  const auto kernel = build_matmul_kernel(queue, 5, 7, 3);
  const auto a = Tensor::full(queue, {5, 3}, 2), b = Tensor::full(queue, {3, 7}, 0.5);
  EXPECT_EQ(kernel(a, b).to_vector<float>(), std::vector<float>(35, 3));
  EXPECT_THROW(kernel(b, a), ShapeError);
  EXPECT_THROW(kernel(a.astype(DType::float64), b.astype(DType::float64)), DtypeError);
  const auto forced = build_matmul_kernel(queue, 5, 7, 3, DType::float32, "MATMUL_TILED");
  EXPECT_EQ(forced.variant(), "matmul.tiled");
  EXPECT_EQ(forced(a, b).to_vector<float>(), std::vector<float>(35, 3));
  EXPECT_THROW(build_matmul_kernel(queue, 5, 7, 3, DType::float32, "MATMUL_FAST"), ArgumentError);
  EXPECT_THROW(build_matmul_kernel(queue, 0, 7, 3), ShapeError);
  EXPECT_THROW(build_matmul_kernel(manager().default_device("cpu").queue, 1, 1, 1), DeviceError);
}

// Products of transposed views need no copies: the result is that of the dense factors.
TEST(Matmul, TransposedFactorsGiveTheSameBits) {
  test::on_every_device([](const Queue& q) {
    const auto a = Tensor::random(q, {33, 65}, 1), b = Tensor::random(q, {65, 31}, 2);
    const auto at = a.transpose().contiguous().transpose();
    const auto bt = b.transpose().contiguous().transpose();
    ASSERT_FALSE(at.is_contiguous());
    const auto dense = ops::matmul(a, b).to_vector<float>();
    const auto views = ops::matmul(at, bt).to_vector<float>();
    for (std::size_t i = 0; i < dense.size(); ++i) ASSERT_NEAR(dense[i], views[i], 1e-5);
  });
}

// A vector times a matrix that the caches do not hold is computed in blocks of its rows.
TEST(Matmul, LargeMatricesTimesAVector) {
  constexpr std::int64_t kColumns = 4099;
  constexpr std::uint64_t kTooMuch = 64 << 20;
  for (const auto& handle : test::opencl_devices()) {
    const auto cache = device_profile(handle.queue).global_mem_cache_size;
    if (cache > kTooMuch) continue;
    const auto rows = static_cast<std::int64_t>(cache / 2 / sizeof(float)) / kColumns + 5;
    const auto a = Tensor::random(handle.queue, {2, rows}, 1);
    const auto b = Tensor::random(handle.queue, {rows, kColumns}, 2);
    const auto one = ops::matmul(a.narrow(0, 0, 1), b).to_vector<float>();
    const auto two = ops::matmul(a, b).to_vector<float>();
    for (std::size_t i = 0; i < one.size(); ++i)
      ASSERT_NEAR(one[i], two[i], 1e-4 * static_cast<double>(rows) / 4) << i;
  }
}

TEST(Attention, BadInputNamesTheRuleAndTheValues) {
  test::on_every_device([](const Queue& q) {
    const auto x = zeros(q, {2, 5, 4});
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::scaled_dot_product_attention(x, zeros(q, {3, 5, 4}), zeros(q, {3, 5, 4}));
              }),
              "[attention] the leading axes of q, k and v must be equal: (2, 5, 4), (3, 5, 4) and "
              "(3, 5, 4)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::scaled_dot_product_attention(x, zeros(q, {2, 5, 3}), zeros(q, {2, 5, 4}));
              }),
              "[attention] q must be (..., L, E), k (..., S, E), v (..., S, F) and E not 0: "
              "(2, 5, 4), (2, 5, 3) and (2, 5, 4)");
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::scaled_dot_product_attention(x, x, x, zeros(q, {4, 5}, DType::boolean));
              }),
              "[attention] the shapes must broadcast, equal or 1 on every axis: (4, 5) and (2, 5, "
              "5)");
    EXPECT_EQ(message_of<DtypeError>([&] {
                ops::scaled_dot_product_attention(x, x, x, zeros(q, {5, 5}, DType::int32));
              }),
              "[attention] the mask must be bool or float32: int32");
  });
}

}  // namespace
}  // namespace netcl
