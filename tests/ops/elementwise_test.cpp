// Element-wise ops beyond what the self-test runs: bad input, dtype rules, numbers, NaN, views of
// many axes, integers at their limits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

using namespace ops;  // NOLINT: this file is about them

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor tensor(const Queue& queue, const std::vector<float>& values) {
  return Tensor::from_host(queue, values);
}

Tensor of_dtype(const Queue& queue, DType dtype, const Shape& shape = {3}) {
  return Tensor::full(queue, shape, 1, dtype);
}

template <class E, class F>
void expect_message(F&& f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no exception: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// NaN equal to NaN.
void expect_values(const Tensor& actual, const std::vector<double>& expected) {
  const auto values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(values[i])) << "at " << i << ": " << values[i];
    else
      EXPECT_EQ(values[i], expected[i]) << "at " << i;
}

// ---- bad input

TEST(Elementwise, ShapesThatDoNotBroadcast) {
  test::on_every_device([](const Queue& queue) {
    const auto a = of_dtype(queue, DType::float32, {2, 3});
    expect_message<ShapeError>([&] { add(a, of_dtype(queue, DType::float32, {2, 4})); }, "[add]");
    expect_message<ShapeError>([&] { a* of_dtype(queue, DType::float32, {2}); }, "(2, 3)");
    expect_message<ShapeError>(
        [&] {
          lt(a, of_dtype(queue, DType::float32, {4, 1, 3, 3}));
        },
        "(4, 1, 3, 3)");
    expect_message<ShapeError>([&] { where(of_dtype(queue, DType::boolean, {5}), a, 0.0); },
                               "[where]");
    expect_message<ShapeError>([&] { add(a, of_dtype(queue, DType::float32, {2, 0})); }, "[add]");
    EXPECT_EQ(add(a, of_dtype(queue, DType::float32, {4, 1, 3})).shape(), Shape({4, 2, 3}));
  });
}

TEST(Elementwise, EmptyTensorsAndNumbersAlone) {
  test::on_every_device([](const Queue& queue) {
    const auto a = of_dtype(queue, DType::float32);
    EXPECT_THROW(relu(Tensor()), ArgumentError);
    EXPECT_THROW(where(Tensor(), a, a), ArgumentError);
    // Not the number 0.
    expect_message<ArgumentError>([&] { add(a, Tensor()); },
                                  "[add] an operand must not be an empty");
    EXPECT_THROW(where(gt(a, 0.0), a, Tensor()), ArgumentError);
    EXPECT_THROW(mul_(a, Tensor()), ArgumentError);
    EXPECT_THROW(prelu(Tensor(), 0.5), ArgumentError);
    expect_message<ArgumentError>([] { add(1.0, 2.0); },
                                  "[add] at least one operand must be a tensor");
    EXPECT_THROW(add_(Tensor(), 1.0), Error);
  });
}

TEST(Elementwise, BFloat16IsForStorage) {
  test::on_every_device([](const Queue& queue) {
    const auto x = of_dtype(queue, DType::bfloat16);
    expect_message<DtypeError>([&] { relu(x); }, "[relu] bfloat16 is for storage");
    expect_message<DtypeError>([&] { add(x, x); }, "[add] bfloat16 is for storage");
    expect_message<DtypeError>([&] { add(x, 1.0); }, "astype");
    EXPECT_EQ(relu(x.astype(DType::float32)).dtype(), DType::float32);
  });
}

TEST(Elementwise, InPlaceNeedsTheSameShapeAndDtype) {
  test::on_every_device([](const Queue& queue) {
    const auto x = of_dtype(queue, DType::float32), wide = of_dtype(queue, DType::float32, {2, 3});
    EXPECT_THROW(add_(x, wide), ShapeError);
    const auto integers = of_dtype(queue, DType::int32);
    expect_message<DtypeError>([&] { add_(integers, 0.5); },
                               "[add_] the result must have the tensor's dtype int32");
    expect_message<DtypeError>([&] { div_(integers, 2.0); }, "float32");
    expect_message<DtypeError>([&] { add_(x, of_dtype(queue, DType::float64)); }, "float64");
    expect_values(x, {1, 1, 1});
    expect_values(integers, {1, 1, 1});
    add_(wide, x);  // the other one may be broadcast
    expect_values(wide, {2, 2, 2, 2, 2, 2});
    EXPECT_EQ(&add_(x, 1.0), &x);
    add_(integers, 2.0);
    expect_values(integers, {3, 3, 3});
  });
}

// ---- dtypes

TEST(Elementwise, MixedDtypesMeetInOne) {
  using D = DType;
  struct Row {
    DType a, b, result;
  };
  const Row rows[] = {
      {D::float32, D::float64, D::float64},  {D::float16, D::float32, D::float32},
      {D::float16, D::float64, D::float64},  {D::int32, D::int64, D::int64},
      {D::int32, D::float16, D::float16},    {D::int64, D::float32, D::float32},
      {D::int64, D::float64, D::float64},    {D::boolean, D::float32, D::float32},
      {D::boolean, D::int32, D::int32},      {D::boolean, D::boolean, D::int32},
      {D::int8, D::uint8, D::int32},         {D::int8, D::int8, D::int32},
      {D::uint8, D::int64, D::int64},        {D::int8, D::float16, D::float16},
      {D::bfloat16, D::float16, D::float32}, {D::bfloat16, D::float32, D::float32},
  };
  test::on_every_device([&](const Queue& queue) {
    for (const auto& row : rows) {
      SCOPED_TRACE(std::string(name_of(row.a)) + " " + std::string(name_of(row.b)));
      const auto a = of_dtype(queue, row.a), b = of_dtype(queue, row.b);
      for (const auto& sum : {add(a, b), add(b, a)}) {
        EXPECT_EQ(sum.dtype(), row.result);
        expect_values(sum, {2, 2, 2});
      }
    }
  });
}

TEST(Elementwise, NumbersFollowTheTensor) {
  test::on_every_device([](const Queue& queue) {
    const auto i = of_dtype(queue, DType::int32), f = of_dtype(queue, DType::float16);
    EXPECT_EQ(add(i, 1.0).dtype(), DType::int32);
    expect_values(add(i, 1.0), {2, 2, 2});
    EXPECT_EQ(add(i, 0.5).dtype(), DType::float32);
    expect_values(add(i, 0.5), {1.5, 1.5, 1.5});
    EXPECT_EQ(add(of_dtype(queue, DType::int64), 0.5).dtype(), DType::float64);
    EXPECT_EQ(sub(0.25, f).dtype(), DType::float16);
    expect_values(sub(0.25, f), {-0.75, -0.75, -0.75});
    EXPECT_EQ(add(of_dtype(queue, DType::boolean), 1.0).dtype(), DType::int32);
    EXPECT_EQ(mul(of_dtype(queue, DType::int8), 100.0).dtype(), DType::int32);
    EXPECT_EQ(lt(i, 1.5).dtype(), DType::boolean);
    expect_values(lt(i, 1.5), {1, 1, 1});
    expect_values(gt(i, 0.5), {1, 1, 1});
    expect_values(where(gt(i, 0.5), 3.0, i), {3, 3, 3});
    EXPECT_EQ(where(gt(i, 0.5), 3.0, i).dtype(), DType::int32);
    EXPECT_EQ(add(i, -2147483648.0).dtype(), DType::int32);
    EXPECT_EQ(add(i, 3e9).dtype(), DType::int64);
    expect_values(add(i, 3e9), {3000000001, 3000000001, 3000000001});
    expect_values(lt(i, 3e9), {1, 1, 1});
  });
}

TEST(Elementwise, IntegersInFloatingOps) {
  test::on_every_device([](const Queue& queue) {
    const std::vector<std::int32_t> values = {7, -7, 2, 0};
    const auto x = Tensor::from_host(queue, values);
    EXPECT_EQ(div(x, 2.0).dtype(), DType::float32);
    expect_values(div(x, 2.0), {3.5, -3.5, 1, 0});
    expect_values(div(x, 0.0), {kInf, -kInf, kInf, kNaN});
    EXPECT_EQ(exp(x).dtype(), DType::float32);
    EXPECT_EQ(ops::sqrt(x.astype(DType::int64)).dtype(), DType::float64);
    EXPECT_EQ(relu(x).dtype(), DType::int32);
    expect_values(relu(x), {7, 0, 2, 0});
    EXPECT_EQ(relu(x.astype(DType::int8)).dtype(), DType::int32);
    expect_values(isinf(x), {0, 0, 0, 0});
    expect_values(isfinite(x), {1, 1, 1, 1});
  });
}

TEST(Elementwise, IntegersAreExactAndWrapAround) {
  test::on_every_device([](const Queue& queue) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    const std::vector<std::int64_t> values = {kMax, kMin, (std::int64_t{1} << 53) + 1, -3};
    const auto x = Tensor::from_host(queue, values);
    const auto same = [](const Tensor& y, std::vector<std::int64_t> expected) {
      EXPECT_EQ(y.to_vector<std::int64_t>(), expected);
    };
    same(add(x, 0.0), values);  // not through double
    same(add(x, 1.0), {kMin, kMin + 1, (std::int64_t{1} << 53) + 2, -2});
    same(neg(x), {-kMax, kMin, -(std::int64_t{1} << 53) - 1, 3});
    same(ops::abs(x), {kMax, kMin, (std::int64_t{1} << 53) + 1, 3});
    same(maximum(x, x), values);
    same(sign(x), {1, -1, 1, -1});
    expect_values(eq(x, x), {1, 1, 1, 1});
    expect_values(lt(x, add(x, 1.0)), {0, 1, 1, 1});
    const std::vector<std::int32_t> small = {std::numeric_limits<std::int32_t>::max(), 65536};
    const auto y = Tensor::from_host(queue, small);
    EXPECT_EQ(square(y).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 0}));
  });
}

TEST(Elementwise, HalfIsComputedInFloat) {
  test::on_every_device([](const Queue& queue) {
    const auto x = tensor(queue, {300, 2048, 0.0001f}).astype(DType::float16);
    expect_values(square(x).astype(DType::float32).narrow(0, 0, 1), {kInf});
    expect_values(add(x, 1.0).narrow(0, 1, 1), {2048});  // rounds to even
    expect_values(add(x, 3.0).narrow(0, 1, 1), {2052});
    // The square of 300 is beyond half, the tanh form of gelu cubes it: no infinity inside.
    expect_values(gelu(x, true).narrow(0, 0, 1), {300});
  });
}

// ---- NaN

TEST(Elementwise, NaNGoesThrough) {
  test::on_every_device([](const Queue& queue) {
    const auto nan = static_cast<float>(kNaN), inf = static_cast<float>(kInf);
    const auto a = tensor(queue, {nan, 1, nan, -inf, inf}),
               b = tensor(queue, {1, nan, nan, inf, 2});
    expect_values(relu(a), {kNaN, 1, kNaN, 0, kInf});
    expect_values(maximum(a, b), {kNaN, kNaN, kNaN, kInf, kInf});
    expect_values(minimum(a, b), {kNaN, kNaN, kNaN, -kInf, 2});
    expect_values(clamp(a, 0, 1), {kNaN, 1, kNaN, 0, 1});
    expect_values(hard_tanh(a), {kNaN, 1, kNaN, -1, 1});
    expect_values(sign(a), {kNaN, 1, kNaN, -1, 1});
    expect_values(ops::abs(a), {kNaN, 1, kNaN, kInf, kInf});
    expect_values(eq(a, a), {0, 1, 0, 1, 1});
    expect_values(ne(a, a), {1, 0, 1, 0, 0});
    expect_values(lt(a, b), {0, 0, 0, 1, 0});
    expect_values(isnan(a), {1, 0, 1, 0, 0});
    expect_values(isinf(a), {0, 0, 0, 1, 1});
    expect_values(isfinite(a), {0, 1, 0, 0, 0});
    expect_values(logical_not(a), {0, 0, 0, 0, 0});  // NaN is not zero
    expect_values(where(isnan(a), 0.0, a), {0, 1, 0, -kInf, kInf});
    expect_values(cast(a, DType::int32), {0, 1, 0, -0x1p31, 0x1p31 - 1});
    expect_values(relu_(a.clone()), {kNaN, 1, kNaN, 0, kInf});
    expect_values(clamp_(a.clone(), -2, 2), {kNaN, 1, kNaN, -2, 2});
  });
}

// ---- shapes

TEST(Elementwise, NothingToDo) {
  test::on_every_device([](const Queue& queue) {
    for (const Shape& shape : {Shape{0}, Shape{3, 0, 2}, Shape{0, 0}}) {
      const auto x = of_dtype(queue, DType::float32, shape);
      EXPECT_EQ(relu(x).shape(), shape);
      EXPECT_EQ(add(x, 1.0).shape(), shape);
      EXPECT_EQ(add(x, x).numel(), 0);
      add_(x, 1.0);
    }
    const auto x = of_dtype(queue, DType::float32, {0, 3});
    EXPECT_EQ(add(x, of_dtype(queue, DType::float32, {1, 3})).shape(), Shape({0, 3}));
    EXPECT_EQ(add(x, of_dtype(queue, DType::float32, {3})).shape(), Shape({0, 3}));
    EXPECT_EQ(add(x, of_dtype(queue, DType::float32, {5, 1, 1})).shape(), Shape({5, 0, 3}));
  });
}

TEST(Elementwise, ScalarsAndManyAxes) {
  test::on_every_device([](const Queue& queue) {
    const auto scalar = of_dtype(queue, DType::float32, {});
    EXPECT_EQ(add(scalar, 1.0).shape(), Shape{});
    EXPECT_EQ(add(scalar, 1.0).item(), 2);
    // Ten axes, reversed and sliced so that no two of them can be merged.
    const Shape shape({2, 3, 2, 2, 3, 2, 2, 2, 3, 2});
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto x = Tensor::from_host(queue, HostView(values, shape));
    const auto reversed = x.permute({9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
    const auto expected = reversed.contiguous().to_vector<float>();
    auto actual = add(reversed, 1.0).to_vector<float>();
    for (auto& value : actual) value -= 1;
    EXPECT_EQ(actual, expected);
    const auto wide = of_dtype(queue, DType::float32, {1, 3, 1, 2, 1, 2, 1, 2, 1, 2});
    actual = add(x, wide).to_vector<float>();
    for (auto& value : actual) value -= 1;
    EXPECT_EQ(actual, values);
    const auto y = x.clone();
    add_(y.permute({9, 8, 7, 6, 5, 4, 3, 2, 1, 0}).slice(0, 0, 2, 2), 1.0);
    actual = y.to_vector<float>();
    for (std::size_t i = 0; i < actual.size(); i += 2) actual[i] -= 1;
    EXPECT_EQ(actual, values);
  });
}

// ---- operators

TEST(Elementwise, Operators) {
  test::on_every_device([](const Queue& queue) {
    const auto a = tensor(queue, {1, 2, 4}), b = tensor(queue, {2, 2, 2});
    expect_values(a + b, {3, 4, 6});
    expect_values(a - b, {-1, 0, 2});
    expect_values(a * b, {2, 4, 8});
    expect_values(a / b, {0.5, 1, 2});
    expect_values(-a, {-1, -2, -4});
    expect_values(a + 1, {2, 3, 5});
    expect_values(1 - a, {0, -1, -3});
    expect_values(2 * a, {2, 4, 8});
    expect_values(4 / a, {4, 2, 1});
    expect_values(-(a + b) * 2 / b - 1, {-4, -5, -7});
  });
}

}  // namespace
}  // namespace netcl
