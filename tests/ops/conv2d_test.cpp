// What the self-test does not reach: messages of bad input, the public functions, the selector.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "netcl/netcl.h"
#include "ops/dispatch.h"
#include "ops/registry.h"
#include "support/devices.h"

namespace netcl {
namespace {

Queue cpu() { return manager().default_device("cpu").queue; }

Tensor zeros(const Shape& shape, DType dtype = DType::float32) {
  return Tensor::from_shape(cpu(), shape, dtype);
}

template <class E, class F>
void expect_error(F&& f, std::initializer_list<const char*> parts) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const E& error) {
    for (const auto* part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

struct BadShapes {
  Shape x, w;
  ops::Conv2dOptions options;
  std::initializer_list<const char*> parts;
};

TEST(Conv2d, bad_shapes_are_named) {
  const BadShapes all[] = {
      {{3, 8, 8}, {4, 3, 3, 3}, {}, {"[conv2d]", "x must have 4 axes", "(3, 8, 8)"}},
      {{1, 3, 8, 8}, {4, 27}, {}, {"[conv2d]", "w must have 4 axes", "(4, 27)"}},
      {{1, 3, 8, 8}, {4, 2, 3, 3}, {}, {"[conv2d]", "as many channels", "2 for 3 / 1"}},
      {{1, 3, 8, 8}, {4, 3, 3, 3}, {.groups = 2}, {"groups must divide the channels", "2 of 3"}},
      {{1, 4, 8, 8}, {3, 2, 3, 3}, {.groups = 2}, {"groups must divide the filters", "2 of 3"}},
      {{1, 3, 4, 8}, {4, 3, 5, 3}, {}, {"larger than the padded image", "height 5", "on 4"}},
      {{1, 3, 8, 4},
       {4, 3, 3, 3},
       {.dilation = {1, 2}},
       {"larger than the padded image", "width 3", "dilation 2", "on 4"}},
      {{1, 3, 8, 8}, {4, 3, 0, 3}, {}, {"at least one tap", "height is 0"}},
  };
  for (const auto& bad : all)
    expect_error<ShapeError>([&] { conv2d(zeros(bad.x), zeros(bad.w), {}, bad.options); },
                             bad.parts);
}

TEST(Conv2d, bad_attributes_are_named) {
  const auto x = zeros({1, 2, 8, 8}), w = zeros({4, 2, 3, 3});
  const auto run = [&](const ops::Conv2dOptions& options) {
    return [&, options] { conv2d(x, w, {}, options); };
  };
  expect_error<ArgumentError>(run({.stride = {1, 0}}), {"stride must be at least 1", "(1, 0)"});
  expect_error<ArgumentError>(run({.padding = {-1, 0}}), {"padding must be at least 0", "(-1, 0)"});
  expect_error<ArgumentError>(run({.dilation = {0, 1}}), {"dilation must be at least 1", "(0, 1)"});
  expect_error<ArgumentError>(run({.groups = 0}), {"groups must be at least 1: 0"});
  expect_error<ShapeError>(run({.padding = {std::int64_t{1} << 62, 0}}), {"below 2^30"});
  expect_error<ArgumentError>(run({.activation = static_cast<ops::Activation>(9)}), {"9"});
}

TEST(Conv2d, bad_bias_and_dtypes_are_named) {
  const auto x = zeros({1, 2, 8, 8}), w = zeros({4, 2, 3, 3});
  expect_error<ShapeError>([&] { conv2d(x, w, zeros({3})); }, {"the bias", "(4,)", "(3,)"});
  expect_error<ShapeError>([&] { conv2d(x, w, zeros({1, 4})); }, {"the bias", "(1, 4)"});
  expect_error<DtypeError>(
      [&] {
        conv2d(x, zeros({4, 2, 3, 3}, DType::float64));
      },
      {"x and w must have one dtype", "float32", "float64"});
  expect_error<DtypeError>([&] { conv2d(x, w, zeros({4}, DType::float16)); },
                           {"x and b must have one dtype", "float16"});
  expect_error<DtypeError>(
      [&] {
        conv2d(zeros({1, 2, 8, 8}, DType::int32), zeros({4, 2, 3, 3}, DType::int32));
      },
      {"must be float32, float64 or float16", "int32"});
}

TEST(Conv2d, a_residual_of_another_shape_or_dtype_is_named) {
  const auto x = zeros({1, 2, 8, 8}), w = zeros({4, 2, 3, 3});
  const auto run = [&](const Tensor& residual) { return [&] { conv2d(x, w, {}, {}, residual); }; };
  const auto like_x = zeros({1, 2, 8, 8}), one_channel = zeros({1, 1, 6, 6}),
             half = zeros({1, 4, 6, 6}, DType::float16);
  expect_error<ShapeError>(run(like_x), {"[conv2d] the residual must have the result's shape",
                                         "(1, 4, 6, 6): (1, 2, 8, 8)"});
  expect_error<ShapeError>(run(one_channel), {"(1, 4, 6, 6): (1, 1, 6, 6)"});
  expect_error<DtypeError>(run(half), {"x and residual must have one dtype", "float16"});
}

TEST(ConvTranspose2d, bad_input_is_named) {
  const auto x = zeros({1, 2, 4, 4}), w = zeros({2, 3, 3, 3});
  const auto run = [&](const ops::ConvTranspose2dOptions& options) {
    return [&, options] { ops::conv_transpose2d(x, w, {}, options); };
  };
  expect_error<ArgumentError>(run({.output_padding = {1, 0}}),
                              {"output_padding", "1 for stride 1"});
  expect_error<ArgumentError>(run({.stride = {0, 1}}), {"stride must be at least 1"});
  expect_error<ShapeError>(run({.padding = {4, 0}}), {"must leave something", "padding 4"});
  expect_error<ShapeError>(
      [&] {
        ops::conv_transpose2d(x, zeros({3, 3, 3, 3}));
      },
      {"[conv_transpose2d]", "3 for 2"});
  expect_error<ShapeError>([&] { ops::conv_transpose2d(x, w, zeros({2})); }, {"(3,)", "(2,)"});
}

TEST(Conv2d, sums_what_the_filter_covers) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {1, 1, 3, 3}, 1.0),
               w = Tensor::full(queue, {1, 1, 3, 3}, 1.0);
    const auto b = Tensor::full(queue, {1}, 0.5);
    const auto y = conv2d(x, w, b, {.padding = {1, 1}});
    EXPECT_EQ(y.to_vector<float>(),
              (std::vector<float>{4.5, 6.5, 4.5, 6.5, 9.5, 6.5, 4.5, 6.5, 4.5}));
    const auto up = ops::conv_transpose2d(x, w, b, {.stride = {3, 3}});
    EXPECT_EQ(up.shape(), Shape({1, 1, 9, 9}));
    for (const auto value : up.to_vector<float>()) EXPECT_EQ(value, 1.5f);
  });
}

// The identity block of a residual network, and a residual that is a view.
TEST(Conv2d, the_residual_may_be_the_input_or_a_view) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::from_host(
        queue, HostView(std::vector<float>{1, -2, 3, -4, 5, 6, -7, 8}, Shape{1, 2, 2, 2}));
    const auto w =
        Tensor::from_host(queue, HostView(std::vector<float>{2, 0, 0, 2}, Shape{2, 2, 1, 1}));
    const auto b = Tensor::full(queue, {2}, 1);
    const auto y = conv2d(x, w, b, {.activation = ops::Activation::relu}, x);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{4, 0, 10, 0, 16, 19, 0, 25}));
    const auto turned = conv2d(x, w, {}, {}, x.transpose());
    EXPECT_EQ(turned.to_vector<float>(), (std::vector<float>{3, -1, 4, -12, 15, 5, -8, 24}));
  });
}

TEST(Conv2d, nan_of_the_input_reaches_the_result_through_relu) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {1, 16, 4, 4}, NAN),
               w = Tensor::full(queue, {16, 16, 3, 3}, 1);
    const auto y = conv2d(x, w, {}, {.padding = {1, 1}, .activation = ops::Activation::relu});
    for (const auto value : y.to_vector<float>()) EXPECT_TRUE(std::isnan(value));
  });
}

// Batches whose transformed tiles pass the cache are added part after part. A batch of one image
// again and again has that image's gradient as often.
TEST(Conv2d, the_gradient_of_many_images_is_the_sum_of_their_parts) {
  test::on_every_device([](const Queue& queue) {
    constexpr std::int64_t kImages = 11;
    const auto gradient = [&](const Tensor& x, const Tensor& dy) {
      Attributes attributes{{"stride", std::vector<std::int64_t>{1, 1}},
                            {"padding", std::vector<std::int64_t>{1, 1}},
                            {"dilation", std::vector<std::int64_t>{1, 1}},
                            {"groups", std::int64_t{1}},
                            {"filter", std::vector<std::int64_t>{3, 3}}};
      return apply("conv2d_backward_weights", {x, dy}, attributes).to_vector<float>();
    };
    const auto image = [&](std::int64_t channels) {
      std::vector<float> values(static_cast<std::size_t>(channels * 56 * 56));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i * i % 127) / 127 - 0.5f;
      return Tensor::from_host(queue, HostView(values, Shape{1, channels, 56, 56}));
    };
    const auto repeated = [](const Tensor& x) {
      return ops::concat(std::vector<Tensor>(kImages, x));
    };
    const auto x = image(32), dy = image(40);
    const auto one = gradient(x, dy), many = gradient(repeated(x), repeated(dy));
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(many[i], kImages * one[i], 0.3) << i;
  });
}

// Results that the caches would not keep are stored past them.
TEST(Conv2d, a_large_batch_has_the_bits_of_its_images) {
  NETCL_NEED_OPENCL();
  const auto device = test::opencl_devices()[0];
  const auto queue = device.queue;
  const auto expect_same = [&](const Shape& image, const Shape& filters,
                               const ops::Conv2dOptions& options) {
    const auto w = Tensor::random(queue, filters, 1), b = Tensor::random(queue, {filters[0]}, 2);
    constexpr std::int64_t kImages = 24;  // 19 MB of results and more
    const auto x = Tensor::random(queue, {kImages, image[0], image[1], image[2]}, 3);
    const auto y = conv2d(x, w, b, options);
    for (std::int64_t n = 0; n < kImages; n += 5)
      EXPECT_EQ(y.narrow(0, n, 1).to_vector<float>(),
                conv2d(x.narrow(0, n, 1), w, b, options).to_vector<float>());
  };
  expect_same({3, 56, 56}, {65, 3, 1, 1}, {});
  expect_same({3, 128, 128}, {65, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}});
}

// Every kernel that the built-in rules name.
TEST(Conv2d, the_selector_finds_its_kernels) {
  const auto& op = find_op("conv2d");
  for (const auto* kernel :
       {"CONV2D_NAIVE", "CONV2D_IM2COL", "CONV2D_IMPLICIT_GEMM", "CONV2D_TILED_LOCAL",
        "CONV2D_WINOGRAD", "CONV2D_PACKED", "CONV2D_WINOGRAD_PANELS", "CONV2D_DEPTHWISE"})
    EXPECT_TRUE(std::any_of(op.variants.begin(), op.variants.end(), [&](const OpVariant& variant) {
      return std::string_view(variant.kernel) == kernel;
    })) << kernel;
}

TEST(Conv2d, a_forced_variant_that_cannot_says_why) {
  NETCL_NEED_OPENCL();
  const auto queue = test::opencl_devices()[0].queue;
  const ForcedVariant forced(find_op("conv2d"), "CONV2D_WINOGRAD");
  expect_error<ArgumentError>(
      [&] {
        conv2d(Tensor::from_shape(queue, {1, 2, 8, 8}), Tensor::from_shape(queue, {2, 2, 5, 5}));
      },
      {"conv2d.winograd_3x3 declines", "5x5"});
}

// Plans of convolutions are shared; each thread has memory of its own for them.
TEST(Conv2d, threads_do_not_disturb_each_other_on_the_cpu) {
  const auto x = Tensor::random(cpu(), {4, 5, 20, 20}, 1),
             w = Tensor::random(cpu(), {7, 5, 3, 3}, 2);
  const auto small = Tensor::random(cpu(), {2, 5, 13, 13}, 3);
  const auto run = [&](const Tensor& image) {
    return conv2d(image, w, {}, {.padding = {1, 1}}).to_vector<float>();
  };
  const auto large_result = run(x), small_result = run(small);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const bool large = (i + t) % 2 == 0;
        if (run(large ? x : small) != (large ? large_result : small_result)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace netcl
