// Reductions, softmax and its relatives, normalisations: API forms, edge cases, messages.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of;

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor from(const Queue& queue, std::vector<float> values, Shape shape) {
  return Tensor::from_host(queue, HostView(values, std::move(shape)));
}

TEST(Reduction, sums_of_many_ones_are_exact) {
  test::on_every_device([](const Queue& queue) {
    const auto ones = Tensor::full(queue, {1 << 24}, 1);
    EXPECT_EQ(ops::sum(ones).item(), 16777216);
    // One accumulator would stop at 2^24.
    EXPECT_EQ(ops::sum(Tensor::full(queue, {3, 1 << 23}, 3)).item(), 75497472);
    EXPECT_EQ(ops::sum(ones.view({1 << 20, 16}), {0}).to_vector<float>()[5], 1048576);
    EXPECT_NEAR(ops::mean(Tensor::full(queue, {1 << 22}, 0.1)).item(), 0.1, 5e-7);
  });
}

TEST(Reduction, integers_widen_and_bool_counts) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {3}, 2147483647, DType::int32);
    EXPECT_EQ(ops::sum(x).dtype(), DType::int64);
    EXPECT_EQ(ops::sum(x).item(), 3.0 * 2147483647);
    EXPECT_EQ(ops::max(x).dtype(), DType::int32);
    EXPECT_EQ(ops::mean(Tensor::arange(queue, 0, 4)).item(), 1.5);
    const auto mask = ops::gt(Tensor::arange(queue, 0, 10), 6.0);
    EXPECT_EQ(ops::sum(mask).item(), 3);
  });
}

TEST(Reduction, nothing_to_reduce) {
  test::on_every_device([](const Queue& queue) {
    const auto none = Tensor::from_shape(queue, {2, 0});
    EXPECT_EQ(ops::sum(none, {1}).to_vector<float>(), (std::vector<float>{0, 0}));
    EXPECT_EQ(ops::prod(none, {1}).to_vector<float>(), (std::vector<float>{1, 1}));
    EXPECT_TRUE(std::isnan(ops::mean(none).item()));
    EXPECT_TRUE(std::isnan(ops::var(none).item()));
    EXPECT_EQ(ops::logsumexp(none).item(), -kInf);
    EXPECT_EQ(message_of<ShapeError>([&] { ops::max(none, {-1}); }),
              "[max] a reduced axis must have elements: axis 1 of (2, 0)");
    EXPECT_EQ(message_of<ShapeError>([&] { ops::argmin(none); }),
              "[argmin] a reduced axis must have elements: axis 1 of (2, 0)");
    EXPECT_EQ(ops::max(Tensor::from_shape(queue, {0, 3}), {1}).numel(), 0);
  });
}

TEST(Reduction, negative_axes_and_bad_ones) {
  test::on_every_device([](const Queue& queue) {
    const auto x = from(queue, {1, 2, 3, 4, 5, 6}, {2, 3});
    EXPECT_EQ(ops::sum(x, {-1}).to_vector<float>(), (std::vector<float>{6, 15}));
    EXPECT_EQ(ops::reduce_sum(x, {0}, true).shape(), (Shape{1, 3}));
    EXPECT_EQ(ops::sum(x.transpose(), {0}).to_vector<float>(), (std::vector<float>{6, 15}));
    EXPECT_EQ(message_of<ShapeError>([&] {
                ops::sum(x, {1, -1});
              }),
              "[sum] every axis may be given once: axis 1 comes twice");
    EXPECT_NE(message_of<ShapeError>([&] { ops::sum(x, {2}); }).find("[sum]"), std::string::npos);
    EXPECT_NE(message_of<ShapeError>([&] { ops::argmax(x, 5); }).find("[argmax]"),
              std::string::npos);
    EXPECT_NE(message_of<DtypeError>([&] { ops::sum(x.astype(DType::bfloat16)); }).find("bfloat16"),
              std::string::npos);
  });
}

TEST(Softmax, topk_gives_values_and_places) {
  test::on_every_device([](const Queue& queue) {
    const auto x = from(queue, {3, 1, 3, 2}, {4});
    const auto [values, places] = ops::topk(x, 3);
    EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{3, 3, 2}));
    EXPECT_EQ(places.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 2, 3}));
    EXPECT_EQ(message_of<ShapeError>([&] { ops::topk(x, 5); }),
              "[topk] k must be between 0 and the 4 elements of axis 0: 5");
  });
}

TEST(CrossEntropy, reductions_and_ignored_rows) {
  test::on_every_device([](const Queue& queue) {
    const auto x = from(queue, {0, 0, 1, 1, 5, 5}, {3, 2});
    const auto labels = Tensor::from_host(queue, HostView(std::vector<std::int64_t>{0, 1, -100}));
    const double loss = std::log(2.0);
    EXPECT_NEAR(ops::cross_entropy(x, labels).item(), loss, 1e-6);
    EXPECT_NEAR(ops::cross_entropy(x, labels, ops::Reduction::sum).item(), 2 * loss, 1e-6);
    const auto rows = ops::cross_entropy(x, labels, ops::Reduction::none).to_vector<float>();
    EXPECT_EQ(rows[2], 0);
    const auto p = Tensor::full(queue, {3, 2}, 0.5);
    EXPECT_NEAR(ops::cross_entropy_probabilities(x, p).item(), loss, 1e-6);
  });
}

TEST(CrossEntropy, a_label_out_of_range_is_named) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::from_shape(queue, {3, 4});
    const auto labels = Tensor::from_host(queue, HostView(std::vector<std::int32_t>{0, 3, 4}));
    EXPECT_EQ(message_of<ArgumentError>([&] { ops::cross_entropy(x, labels); }),
              "[cross_entropy] a label must be below the 4 classes: row 2 has 4");
    const auto negative = Tensor::from_host(queue, HostView(std::vector<std::int32_t>{0, -1, -7}));
    EXPECT_EQ(message_of<ArgumentError>([&] { ops::cross_entropy(x, negative); }),
              "[cross_entropy] a label must be below the 4 classes: row 1 has -1");
    EXPECT_NE(message_of<ShapeError>([&] {
                ops::cross_entropy(x, labels.narrow(0, 0, 2));
              }).find("one label per row"),
              std::string::npos);
    EXPECT_NE(message_of<DtypeError>([&] {
                ops::cross_entropy(x, labels.astype(DType::float32));
              }).find("int32 or int64"),
              std::string::npos);
  });
}

TEST(Norm, bad_parameters_are_named) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::from_shape(queue, {2, 6});
    const auto five = Tensor::from_shape(queue, {5}), six = Tensor::from_shape(queue, {6});
    EXPECT_EQ(message_of<ShapeError>([&] { ops::layer_norm(x, five, {}); }),
              "[layer_norm] scale must have the shape (6,): (5,)");
    EXPECT_EQ(message_of<ShapeError>([&] { ops::group_norm(x, 4, {}, {}); }),
              "[group_norm] the channels must divide into the groups: 6 channels, 4 groups");
    EXPECT_EQ(message_of<ShapeError>([&] { ops::batch_norm_train(x, six, five); }),
              "[batch_norm_train] shift must have one element per channel, (6,): (5,)");
    EXPECT_EQ(message_of<ShapeError>([&] { ops::batch_norm(x, six, {}, six, six); }),
              "[batch_norm] shift must have one element per channel, (6,): none");
  });
}

TEST(Norm, half_takes_statistics_of_single_precision) {
  test::on_every_device([](const Queue& queue) {
    const auto x = Tensor::full(queue, {2, 1}, 3, DType::float16);
    const auto one = Tensor::full(queue, {1}, 1, DType::float16);
    const auto result = ops::batch_norm_train(x, one, one);
    EXPECT_EQ(result.mean.dtype(), DType::float32);
    EXPECT_EQ(result.mean.item(), 3);
    const auto y = ops::batch_norm(x, one, one, one, one, 0, true);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 3}));
  });
}

TEST(CrossEntropy, TheMeanOfManyHalvesDoesNotOverflow) {
  test::on_every_device([](const Queue& q) {
    const auto logits = Tensor::from_shape(q, {40000, 8}, DType::float16);
    const auto labels = Tensor::from_shape(q, {40000}, DType::int64);
    const auto loss = ops::cross_entropy(logits, labels);  // log(8) each, 83,000 in all
    EXPECT_EQ(loss.dtype(), DType::float16);
    EXPECT_NEAR(loss.item(), 2.0794, 0.002);
  });
}

}  // namespace
}  // namespace netcl
