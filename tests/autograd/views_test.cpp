// Views, copies and casts are followed wherever they are made.
#include <gtest/gtest.h>

#include "netcl/autograd.h"
#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

using test::on_every_device;
using Inputs = std::vector<Tensor>;

void expect_right(const Queue& queue, const Shape& shape,
                  const std::function<Tensor(const Tensor&)>& fn) {
  const auto x = Tensor::random(queue, shape, 7, Distribution::normal, DType::float64);
  const auto result =
      gradcheck([&](const Inputs& in) { return Inputs{fn(in[0])}; }, {x}, {.second_order = false});
  EXPECT_TRUE(result) << result.message;
}

TEST(Following, members_of_tensor) {
  on_every_device([](const Queue& queue) {
    const Shape shape{3, 4, 5};
    const auto check = [&](const std::function<Tensor(const Tensor&)>& fn) {
      expect_right(queue, shape, [&](const Tensor& x) {
        const auto y = fn(x);
        return y * y;
      });
    };
    check([](const Tensor& x) { return x.reshape({5, -1}); });
    check([](const Tensor& x) { return x.transpose().reshape({60}); });  // must copy
    check([](const Tensor& x) { return x.view(Shape{12, 5}); });
    check([](const Tensor& x) { return x.permute({2, 0, -2}); });
    check([](const Tensor& x) { return x.transpose(0, 1); });
    check([](const Tensor& x) { return x.narrow(1, 1, 2); });
    check([](const Tensor& x) { return x.select(2, -2); });
    check([](const Tensor& x) { return x.slice(1, 0, Tensor::kEnd, 2); });
    check([](const Tensor& x) { return x.slice(2, Tensor::kBegin, Tensor::kEnd, -2); });
    check([](const Tensor& x) { return x.slice(0, 2, Tensor::kEnd, -1); });
    check([](const Tensor& x) { return x.unsqueeze(1).squeeze(1); });
    check([](const Tensor& x) { return x.unsqueeze(0).expand({2, 3, 4, 5}); });
    check([](const Tensor& x) { return x.slice(2, 0, 1).expand({3, 4, 7}); });
    check([](const Tensor& x) { return x.clone(); });
    check([](const Tensor& x) { return x.transpose().contiguous(); });
    check([](const Tensor& x) { return x.slice(0, 1, 1).reshape({0}); });
  });
}

TEST(Following, functions_of_ops) {
  on_every_device([](const Queue& queue) {
    expect_right(queue, {4, 6}, [](const Tensor& x) {
      const auto parts = ops::split(x, {2, 4}, 1);
      return ops::concat({parts[1] * parts[1], ops::permute(parts[0], {0, 1})}, 1);
    });
    expect_right(queue, {4, 1}, [](const Tensor& x) {
      return ops::expand(x, {4, 3}) * ops::transpose(ops::reshape(x, {1, 4}));
    });
  });
}

TEST(Following, casts_and_devices) {
  on_every_device([](const Queue& queue) {
    auto x = Tensor::from_host(queue, std::vector<float>{1, 2, 3});
    x.set_requires_grad();
    Tape tape;
    tape.backward(ops::sum(x.astype(DType::float64) * 2.0));
    EXPECT_EQ(x.grad().dtype(), DType::float32);
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2, 2}));
    EXPECT_FALSE(x.astype(DType::int32).requires_grad());
    x.set_grad({});
    const auto away = x.to("cpu") * 3.0;
    tape.backward(ops::sum(away.to(queue) * x));
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{6, 12, 18}));
  });
}

TEST(Following, mixed_dtypes_of_operands) {
  on_every_device([](const Queue& queue) {
    auto x = Tensor::from_host(queue, std::vector<float>{1, 2});
    x.set_requires_grad();
    const auto y = Tensor::from_host(queue, std::vector<double>{3, 4});
    Tape tape;
    tape.backward(ops::sum(x * y));
    EXPECT_EQ(x.grad().dtype(), DType::float32);
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4}));
  });
}

}  // namespace
}  // namespace netcl
