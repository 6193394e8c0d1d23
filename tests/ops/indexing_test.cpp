// What the self-test cannot try of views, joins and indices: bad input, and forms of the functions.
#include <gtest/gtest.h>

#include "netcl/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace netcl {
namespace {

using test::message_of;

using Indices = std::vector<std::int64_t>;

Tensor numbers(const Queue& queue, Shape shape, DType dtype = DType::float32) {
  const auto n = static_cast<double>(shape.numel());
  return Tensor::arange(queue, 0, n, 1, dtype).reshape(shape.sizes());
}

Tensor indices_of(const Queue& queue, const Indices& values, DType dtype = DType::int64) {
  return Tensor::from_host(queue, values).astype(dtype);
}

TEST(Indexing, names_the_index_its_position_and_the_range) {
  test::on_every_device([](const Queue& queue) {
    for (const auto dtype : {DType::int32, DType::int64}) {
      const auto x = numbers(queue, {4, 3});
      const auto bad = indices_of(queue, {0, 3, 4, -7}, dtype);
      const auto text = message_of<ArgumentError>([&] { ops::index_select(x, 0, bad); });
      EXPECT_EQ(text, "[index_select] indices must be in [0, 4): 4 at position (2)");
      const auto negative = indices_of(queue, {1, -1}, dtype);
      EXPECT_EQ(message_of<ArgumentError>([&] { ops::embedding(negative, x); }),
                "[embedding] indices must be in [0, 4): -1 at position (1)");
      EXPECT_EQ(message_of<ArgumentError>([&] { ops::one_hot(negative, 2); }),
                "[one_hot] indices must be in [0, 2): -1 at position (1)");
      const auto square = indices_of(queue, {0, 1, 2, 3}, dtype).reshape({2, 2});
      EXPECT_EQ(message_of<ArgumentError>([&] { ops::gather(x, 1, square); }),
                "[gather] indices must be in [0, 3): 3 at position (1, 1)");
      const auto source = numbers(queue, {2, 2});
      EXPECT_EQ(message_of<ArgumentError>([&] { ops::scatter_add(x, 1, square, source); }),
                "[scatter_add] indices must be in [0, 3): 3 at position (1, 1)");
      EXPECT_EQ(message_of<ArgumentError>([&] {
                  ops::index_add(x, 0, negative, numbers(queue, {2, 3}));
                }),
                "[index_add] indices must be in [0, 4): -1 at position (1)");
    }
  });
}

TEST(Indexing, huge_indices_do_not_wrap) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {4});
    for (const auto bad : {INT64_MAX, INT64_MIN, std::int64_t{1} << 32}) {
      const auto text =
          message_of<ArgumentError>([&] { ops::index_select(x, 0, indices_of(queue, {bad})); });
      EXPECT_NE(text.find(std::to_string(bad)), text.npos) << text;
    }
  });
}

TEST(Indexing, the_first_of_many_bad_ones_is_named) {
  test::on_every_device([](const Queue& queue) {
    Indices many(100000, 1);
    for (std::size_t i = 70001; i < many.size(); ++i) many[i] = 9;
    const auto text = message_of<ArgumentError>(
        [&] { ops::index_select(numbers(queue, {4}), 0, indices_of(queue, many)); });
    EXPECT_EQ(text, "[index_select] indices must be in [0, 4): 9 at position (70001)");
  });
}

TEST(Indexing, nothing_can_be_picked_from_nothing) {
  test::on_every_device([](const Queue& queue) {
    const auto table = Tensor::from_shape(queue, {0, 3});
    EXPECT_THROW(ops::embedding(indices_of(queue, {0}), table), ArgumentError);
    EXPECT_EQ(ops::embedding(indices_of(queue, {}), table).shape(), (Shape{0, 3}));
  });
}

TEST(Indexing, refuses_indices_that_are_no_integers) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {4});
    EXPECT_THROW(ops::index_select(x, 0, numbers(queue, {2})), DtypeError);
    EXPECT_THROW(ops::gather(x, 0, numbers(queue, {2}, DType::uint8)), DtypeError);
    EXPECT_THROW(ops::one_hot(x, 4), DtypeError);
  });
}

TEST(Indexing, refuses_shapes_that_do_not_fit) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {4, 3});
    const auto two = indices_of(queue, {0, 1});
    EXPECT_THROW(ops::index_select(x, 2, two), ShapeError);
    EXPECT_THROW(ops::index_select(x, 0, two.reshape({1, 2})), ShapeError);
    EXPECT_THROW(ops::gather(x, 0, two), ShapeError);
    EXPECT_THROW(ops::gather(x, 0, indices_of(queue, {0, 0, 0, 0}).reshape({1, 4})), ShapeError);
    EXPECT_THROW(ops::scatter_add(x, 0, two.reshape({1, 2}), numbers(queue, {2, 1})), ShapeError);
    EXPECT_THROW(ops::index_add(x, 0, two, numbers(queue, {2, 4})), ShapeError);
    EXPECT_THROW(ops::index_add(x, 0, two, numbers(queue, {2, 3}, DType::int32)), DtypeError);
    EXPECT_THROW(ops::embedding(two, numbers(queue, {4})), ShapeError);
    EXPECT_THROW(ops::one_hot(two, 0), ArgumentError);
    EXPECT_THROW(ops::tril(numbers(queue, {4})), ShapeError);
    EXPECT_THROW(ops::embedding(Tensor(), x), ArgumentError);
  });
}

TEST(Indexing, sums_of_duplicates_are_the_same_every_time) {
  test::on_every_device([](const Queue& queue) {
    const auto source = Tensor::random(queue, {5000, 3}, 1);
    const auto indices = ops::cast(ops::mul(Tensor::random(queue, {5000}, 2), 7.0), DType::int32);
    const auto zeros = Tensor::from_shape(queue, {7, 3});
    const auto first = ops::index_add(zeros, 0, indices, source).to_vector<float>();
    EXPECT_EQ(ops::index_add(zeros, 0, indices, source).to_vector<float>(), first);
  });
}

TEST(Indexing, half_is_summed_in_float) {
  test::on_every_device([](const Queue& queue) {
    // 2048 + 1 is 2048 in float16: one by one nothing would ever be added.
    const auto x = Tensor::full(queue, {1}, 2048, DType::float16);
    const auto ones = Tensor::full(queue, {100}, 1, DType::float16);
    const auto at = Tensor::from_shape(queue, {100}, DType::int64);
    EXPECT_EQ(ops::index_add(x, 0, at, ones).item(), 2148);
    EXPECT_EQ(ops::scatter_add(x, 0, at, ones).item(), 2148);
  });
}

TEST(Indexing, elements_that_only_move_may_be_of_any_dtype) {
  test::on_every_device([](const Queue& queue) {
    for (const auto dtype : {DType::bfloat16, DType::int8, DType::uint8, DType::boolean}) {
      const auto x = ops::narrow(numbers(queue, {3, 2}, dtype), 0, 0, 2);  // 0 1 2 3, or 0 1 1 1
      const auto numbers_of = [](const Tensor& t) {
        return t.astype(DType::float32).to_vector<float>();
      };
      const auto last = dtype == DType::boolean ? 1.0f : 3.0f, third = std::min(last, 2.0f);
      const auto at = indices_of(queue, {1});
      EXPECT_EQ(numbers_of(ops::index_select(x, 0, at)), (std::vector<float>{third, last}));
      EXPECT_EQ(numbers_of(ops::gather(x, 1, at.reshape({1, 1}))), std::vector<float>{1});
      EXPECT_EQ(numbers_of(ops::tril(x)), (std::vector<float>{0, 0, third, last}));
      EXPECT_EQ(numbers_of(ops::concat({x, x}, 1)),
                (std::vector<float>{0, 1, 0, 1, third, last, third, last}));
      EXPECT_EQ(numbers_of(ops::pad(x, {{0, 0}, {1, 0}}, 1)),
                (std::vector<float>{1, 0, 1, 1, third, last}));
    }
  });
}

TEST(Joining, refuses_tensors_that_do_not_fit) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {2, 3});
    EXPECT_THROW(ops::concat({}), ArgumentError);
    EXPECT_THROW(ops::concat({x, Tensor()}), ArgumentError);
    EXPECT_THROW(ops::concat({x, numbers(queue, {2, 4})}, 0), ShapeError);
    EXPECT_THROW(ops::concat({x, numbers(queue, {3})}, 0), ShapeError);
    EXPECT_THROW(ops::concat({x, x}, 2), ShapeError);
    const auto vast = Tensor::empty(queue, {0, INT64_MAX / 2 + 1});
    EXPECT_THROW(ops::concat({vast, vast}, 1), ShapeError);
    EXPECT_THROW(ops::concat({x, numbers(queue, {2, 3}, DType::int32)}), DtypeError);
    EXPECT_THROW(ops::stack({x, numbers(queue, {3, 2})}), ShapeError);
    EXPECT_THROW(ops::stack({x, x}, 3), ShapeError);
    EXPECT_EQ(ops::stack({x, x}, 2).shape(), (Shape{2, 3, 2}));
  });
}

TEST(Views, split_gives_views_that_add_up) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {2, 6});
    const auto parts = ops::split(x, {1, 0, 5}, -1);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
    EXPECT_TRUE(parts[2].shares_storage(x));
    EXPECT_EQ(ops::concat(parts, 1).to_vector<float>(), x.to_vector<float>());
    EXPECT_THROW(ops::split(x, {1, 4}, 1), ShapeError);
    EXPECT_THROW(ops::split(x, {7, -1}, 1), ShapeError);
    EXPECT_THROW(ops::split(x, {2}, 2), ShapeError);
  });
}

TEST(Views, refuse_what_does_not_fit) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {2, 6});
    EXPECT_THROW(ops::reshape(x, {5, -1}), ShapeError);
    EXPECT_THROW(ops::reshape(x, {-1, -1}), ShapeError);
    EXPECT_THROW(ops::reshape(x, {13}), ShapeError);
    EXPECT_THROW(ops::reshape(x, {-2, -6}), ShapeError);
    EXPECT_THROW(ops::reshape(x, {INT64_MAX, INT64_MAX}), ShapeError);
    EXPECT_THROW(ops::permute(x, {0, 0}), ShapeError);
    EXPECT_THROW(ops::permute(x, {0}), ShapeError);
    EXPECT_THROW(ops::transpose(x, 0, 2), ShapeError);
    EXPECT_THROW(ops::expand(x, {2, 12}), ShapeError);
    EXPECT_THROW(ops::expand(x, {6}), ShapeError);
    EXPECT_THROW(ops::narrow(x, 1, 5, 2), ShapeError);
    EXPECT_THROW(ops::narrow(x, 1, INT64_MAX, INT64_MAX), ShapeError);
    EXPECT_THROW(ops::pad(x, {{1, 1}}), ShapeError);
    EXPECT_THROW(ops::pad(x, {{1, 1}, {-1, 0}}), ShapeError);
    EXPECT_THROW(ops::pad(x, {{INT64_MAX, 1}, {0, 0}}), ShapeError);
    EXPECT_THROW(ops::reshape(Tensor(), {1}), ArgumentError);
  });
}

TEST(Views, share_memory_and_fill_writes_through_them) {
  test::on_every_device([](const Queue& queue) {
    const auto x = numbers(queue, {2, 3});
    EXPECT_TRUE(ops::transpose(x).shares_storage(x));
    ops::fill_(ops::narrow(x, 1, 1, 1), 9);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 9, 2, 3, 9, 5}));
    ops::fill_(ops::narrow(x, 0, 1, 1), -1);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 9, 2, -1, -1, -1}));
    EXPECT_EQ(ops::cast(x, DType::uint8).to_vector<float>(),
              (std::vector<float>{0, 9, 2, 0, 0, 0}));
    EXPECT_TRUE(ops::cast(x, DType::float32).shares_storage(x));
  });
}

}  // namespace
}  // namespace netcl
