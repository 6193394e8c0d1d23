// What the self-test cannot try of pooling and resizing: bad input, and known values.
#include <gtest/gtest.h>

#include <cmath>

#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

Tensor image(const Queue& queue, std::int64_t height, std::int64_t width) {
  const auto n = static_cast<double>(height * width);
  return Tensor::arange(queue, 0, n, 1, DType::float32).reshape({1, 1, height, width});
}

TEST(Pooling, refuses_windows_that_do_not_fit) {
  test::on_every_device([](const Queue& queue) {
    const auto x = image(queue, 4, 4);
    EXPECT_THROW(ops::max_pool2d(x, {5, 5}), ShapeError);
    EXPECT_THROW(ops::max_pool2d(x, {2, 2}, {.padding = {2, 2}}), ShapeError);
    EXPECT_THROW(ops::max_pool2d(x, {3, 3}, {.padding = {2, 0}}), ShapeError);
    EXPECT_THROW(ops::max_pool2d(x, {0, 2}), ShapeError);
    EXPECT_THROW(ops::avg_pool2d(x, {2, 2}, {.stride = {-1, 1}}), ShapeError);
    EXPECT_THROW(ops::avg_pool2d(x, {2, 2}, {.padding = {-1, 0}}), ShapeError);
    EXPECT_THROW(ops::avg_pool2d(x, {INT64_MAX, INT64_MAX}, {.padding = {INT64_MAX / 2, 0}}),
                 ShapeError);
    EXPECT_THROW(ops::max_pool2d(x.reshape({4, 4}), {2, 2}), ShapeError);
    EXPECT_THROW(ops::max_pool2d(Tensor::from_shape(queue, {1, 1, 0, 4}), {1, 1}), ShapeError);
    EXPECT_THROW(ops::max_pool2d(x.astype(DType::int32), {2, 2}), DtypeError);
    EXPECT_THROW(ops::adaptive_avg_pool2d(x, {0, 2}), ShapeError);
    EXPECT_THROW(ops::adaptive_max_pool2d(x.reshape({16}), {1, 1}), ShapeError);
  });
}

TEST(Pooling, strides_default_to_the_window) {
  test::on_every_device([](const Queue& queue) {
    const auto x = image(queue, 4, 4);
    EXPECT_EQ(ops::max_pool2d(x, {2, 2}).to_vector<float>(), (std::vector<float>{5, 7, 13, 15}));
    EXPECT_EQ(ops::max_pool2d(x, {2, 2}, {.stride = {0, 1}}).shape(), (Shape{1, 1, 2, 3}));
    EXPECT_EQ(ops::avg_pool2d(x, {2, 2}).to_vector<float>(),
              (std::vector<float>{2.5, 4.5, 10.5, 12.5}));
  });
}

TEST(Pooling, padding_counts_or_does_not) {
  test::on_every_device([](const Queue& queue) {
    const auto ones = Tensor::full(queue, {1, 1, 2, 2}, 1);
    const auto with = ops::avg_pool2d(ones, {2, 2}, {.padding = {1, 1}});
    EXPECT_EQ(with.to_vector<float>(), (std::vector<float>{.25, .25, .25, .25}));
    const auto without = ops::avg_pool2d(ones, {2, 2}, {.padding = {1, 1}, .count_padding = false});
    EXPECT_EQ(without.to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  });
}

TEST(Pooling, padding_is_never_the_largest_and_nan_always_is) {
  test::on_every_device([](const Queue& queue) {
    const auto negative = Tensor::full(queue, {1, 1, 3, 3}, -5);
    for (const auto value :
         ops::max_pool2d(negative, {3, 3}, {.padding = {1, 1}}).to_vector<float>())
      EXPECT_EQ(value, -5);
    ops::fill_(ops::narrow(negative, 3, 1, 1), std::nan(""));
    for (const auto value : ops::max_pool2d(negative, {3, 3}).to_vector<float>())
      EXPECT_TRUE(std::isnan(value));
  });
}

// By hand, from the conventions of torch.nn.functional.interpolate.
TEST(Resizing, agrees_with_interpolate) {
  test::on_every_device([](const Queue& queue) {
    const auto x = image(queue, 1, 2);
    EXPECT_EQ(ops::upsample_nearest(x, {1, 5}).to_vector<float>(),
              (std::vector<float>{0, 0, 0, 1, 1}));
    EXPECT_EQ(ops::upsample_bilinear(x, {1, 4}).to_vector<float>(),
              (std::vector<float>{0, .25, .75, 1}));
    EXPECT_EQ(ops::upsample_bilinear(x, {1, 3}, true).to_vector<float>(),
              (std::vector<float>{0, .5, 1}));
    EXPECT_EQ(ops::upsample_bilinear(image(queue, 1, 4), {1, 2}).to_vector<float>(),
              (std::vector<float>{.5, 2.5}));
  });
}

TEST(Resizing, refuses_sizes_that_make_no_sense) {
  test::on_every_device([](const Queue& queue) {
    const auto x = image(queue, 2, 2);
    EXPECT_THROW(ops::upsample_nearest(x, {0, 2}), ShapeError);
    EXPECT_THROW(ops::upsample_bilinear(x, {-1, 2}), ShapeError);
    EXPECT_THROW(ops::upsample_nearest(x, {INT64_MAX, 2}), ShapeError);
    EXPECT_THROW(ops::upsample_nearest(x.reshape({2, 2}), {4, 4}), ShapeError);
    EXPECT_THROW(ops::upsample_bilinear(x.astype(DType::int32), {4, 4}), DtypeError);
    EXPECT_THROW(ops::upsample_nearest(Tensor::from_shape(queue, {1, 1, 0, 4}), {4, 4}),
                 ShapeError);
  });
}

}  // namespace
}  // namespace netcl
