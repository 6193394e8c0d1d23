#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "netcl/netcl.h"
#include "support/devices.h"

namespace netcl {
namespace {

using test::on_every_device;

Tensor counting(const Queue& queue, const Shape& shape, DType dtype = DType::int32) {
  return Tensor::arange(queue, 0, static_cast<double>(shape.numel()), 1, dtype)
      .reshape(shape.sizes());
}

// A view as a plain function from an index to the value it must show: the oracle of these tests.
struct Model {
  Shape shape;
  std::function<std::int64_t(std::vector<std::int64_t>)> value;
};

Model model_of(const Shape& shape) {
  return {shape, [strides = contiguous_strides(shape)](std::vector<std::int64_t> index) {
            std::int64_t sum = 0;
            for (std::size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
            return sum;
          }};
}

std::vector<std::int64_t> values_of(const Model& model) {
  std::vector<std::int64_t> result;
  std::vector<std::int64_t> index(static_cast<std::size_t>(model.shape.rank()), 0);
  for (std::int64_t n = 0; n < model.shape.numel(); ++n) {
    auto rest = n;
    for (std::size_t axis = index.size(); axis-- > 0;) {
      index[axis] = rest % model.shape.sizes()[axis];
      rest /= model.shape.sizes()[axis];
    }
    result.push_back(model.value(index));
  }
  return result;
}

void expect_shows(const Tensor& view, const Model& model) {
  ASSERT_EQ(view.shape(), model.shape);
  EXPECT_EQ(view.to_vector<std::int64_t>(), values_of(model));
}

// Applies one random view operation to both.
void random_step(Tensor& view, Model& model, std::mt19937& random) {
  const auto rank = view.ndim();
  const auto pick = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  const auto inner = model.value;
  switch (random() % 5) {
    case 0: {  // permute
      std::vector<std::int64_t> axes;
      for (std::int64_t i = 0; i < rank; ++i) axes.push_back(i);
      std::shuffle(axes.begin(), axes.end(), random);
      std::vector<std::int64_t> sizes;
      for (const auto axis : axes) sizes.push_back(model.shape[axis]);
      view = view.permute(axes);
      model = {Shape(sizes), [inner, axes](std::vector<std::int64_t> index) {
                 std::vector<std::int64_t> source(index.size());
                 for (std::size_t i = 0; i < axes.size(); ++i)
                   source[static_cast<std::size_t>(axes[i])] = index[i];
                 return inner(source);
               }};
      return;
    }
    case 1: {  // slice with any step
      if (rank == 0) return;
      const auto axis = pick(rank);
      const auto size = model.shape[axis];
      const auto start = pick(2 * size + 3) - size - 1, stop = pick(2 * size + 3) - size - 1;
      auto step = pick(5) - 2;
      if (step == 0) step = 1;
      // Python's own definition of range(*slice.indices(size)).
      const auto low = step > 0 ? 0 : -1, high = static_cast<int>(step > 0 ? size : size - 1);
      const auto bound = [&](std::int64_t v) {
        return std::clamp<std::int64_t>(v < 0 ? v + size : v, low, high);
      };
      std::vector<std::int64_t> taken;
      for (auto i = bound(start); step > 0 ? i < bound(stop) : i > bound(stop); i += step)
        taken.push_back(i);
      auto sizes = model.shape.sizes();
      sizes[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(taken.size());
      view = view.slice(axis, start, stop, step);
      model = {Shape(sizes), [inner, axis, taken](std::vector<std::int64_t> index) {
                 auto& at = index[static_cast<std::size_t>(axis)];
                 at = taken[static_cast<std::size_t>(at)];
                 return inner(index);
               }};
      return;
    }
    case 2: {  // a new axis, expanded
      auto sizes = model.shape.sizes();
      sizes.insert(sizes.begin(), 1 + pick(3));
      view = view.expand(Shape(sizes));
      model = {Shape(sizes), [inner](std::vector<std::int64_t> index) {
                 return inner({index.begin() + 1, index.end()});
               }};
      return;
    }
    case 3: {  // select
      if (rank == 0) return;
      const auto axis = pick(rank);
      if (model.shape[axis] == 0) return;
      const auto at = pick(model.shape[axis]);
      auto sizes = model.shape.sizes();
      sizes.erase(sizes.begin() + axis);
      view = view.select(axis, at - (random() % 2 == 0 ? model.shape[axis] : 0));
      model = {Shape(sizes), [inner, axis, at](std::vector<std::int64_t> index) {
                 index.insert(index.begin() + axis, at);
                 return inner(index);
               }};
      return;
    }
    default: {  // reshape to another factoring of the same count
      const auto flat = values_of(model);
      std::vector<std::int64_t> sizes;
      auto rest = model.shape.numel();
      if (rest == 0) return;
      for (const std::int64_t factor : {2, 3, 5})
        if (rest % factor == 0 && random() % 2 == 0) {
          sizes.push_back(factor);
          rest /= factor;
        }
      sizes.push_back(random() % 2 == 0 ? rest : -1);
      view = view.reshape(sizes);
      sizes.back() = rest;
      const auto strides = contiguous_strides(Shape(sizes));
      model = {Shape(sizes), [flat, strides](std::vector<std::int64_t> index) {
                 std::int64_t at = 0;
                 for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
                 return flat[static_cast<std::size_t>(at)];
               }};
    }
  }
}

TEST(Views, RandomChainsMatchTheModel) {
  on_every_device([](const Queue& queue) {
    std::mt19937 random(20);
    for (int round = 0; round < 300; ++round) {
      const Shape shape{1 + static_cast<std::int64_t>(random() % 6),
                        1 + static_cast<std::int64_t>(random() % 5),
                        1 + static_cast<std::int64_t>(random() % 4)};
      auto view = counting(queue, shape);
      auto model = model_of(shape);
      const auto steps = 1 + random() % 4;
      for (unsigned i = 0; i < steps; ++i) random_step(view, model, random);
      expect_shows(view, model);
      if (testing::Test::HasFailure()) FAIL() << "round " << round;
    }
  });
}

TEST(Views, ShareStorage) {
  on_every_device([](const Queue& queue) {
    const auto base = counting(queue, {4, 6});
    for (const auto& view : {base.transpose(), base.narrow(0, 1, 2), base.expand({2, 4, 6}),
                             base.reshape({2, 12}), base.unsqueeze(0), base.select(0, 1)})
      EXPECT_TRUE(view.shares_storage(base));
    EXPECT_FALSE(base.transpose().reshape({24}).shares_storage(base)) << "this one must copy";
    EXPECT_TRUE(base.contiguous().shares_storage(base));
    EXPECT_FALSE(base.transpose().contiguous().shares_storage(base));
  });
}

TEST(Views, ManyAxes) {
  on_every_device([](const Queue& queue) {
    // Reversed axes do not merge: eleven loops, more than a kernel takes at once.
    const Shape shape{2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    auto view = counting(queue, shape);
    auto model = model_of(shape);
    std::vector<std::int64_t> axes;
    for (std::int64_t i = shape.rank(); i-- > 0;) axes.push_back(i);
    view = view.permute(axes);
    const auto inner = model.value;
    std::vector<std::int64_t> sizes(shape.sizes().rbegin(), shape.sizes().rend());
    model = {Shape(sizes), [inner](std::vector<std::int64_t> index) {
               std::reverse(index.begin(), index.end());
               return inner(index);
             }};
    expect_shows(view, model);
  });
}

// Whole tiles and rests of every kernel that copies, in every size of elements.
TEST(Views, CopiesOfManyElementsMatchTheModel) {
  struct Row {
    Shape shape;
    std::vector<std::int64_t> order;
  };
  const Row rows[] = {{{67, 131}, {1, 0}},
                      {{64, 64}, {1, 0}},
                      {{16, 257}, {1, 0}},
                      {{3, 1400}, {1, 0}},
                      {{1400, 5}, {1, 0}},
                      {{9, 500}, {1, 0}},
                      {{2, 13, 16, 17}, {0, 2, 3, 1}},
                      {{2, 16, 17, 13}, {0, 3, 1, 2}},
                      {{33, 7, 19}, {2, 1, 0}},
                      {{4, 6, 8, 33}, {1, 2, 0, 3}},
                      {{19, 2, 128}, {1, 0, 2}},
                      {{5, 3, 7, 9, 11}, {3, 0, 4, 2, 1}}};
  on_every_device([&](const Queue& queue) {
    for (const auto dtype : {DType::float32, DType::int64, DType::float16, DType::uint8})
      for (const auto& row : rows) {
        auto numbers = HostArray(row.shape, DType::int32);
        auto values = numbers.values<std::int32_t>();
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<std::int32_t>(i % 251);
        const auto from = Tensor::from_host(queue, numbers).astype(dtype);
        auto model = model_of(row.shape);
        const auto inner = model.value;
        std::vector<std::int64_t> sizes;
        for (const auto axis : row.order) sizes.push_back(row.shape[axis]);
        model = {Shape(sizes), [&, inner](const std::vector<std::int64_t>& index) {
                   std::vector<std::int64_t> at(index.size());
                   for (std::size_t i = 0; i < at.size(); ++i)
                     at[static_cast<std::size_t>(row.order[i])] = index[i];
                   return inner(at) % 251;
                 }};
        const auto view = from.permute(row.order);
        expect_shows(view, model);
        // A part of it, and into a part of something larger, which stays as it was around it.
        const auto part = view.narrow(0, 1, view.size(0) - 1);
        auto wider = view.shape().sizes();
        ++wider.front(), wider.back() += 3;
        const auto whole = Tensor::full(queue, Shape(wider), 7, dtype);
        whole.narrow(0, 1, part.size(0)).narrow(-1, 2, view.size(-1)).copy_from(part);
        expect_shows(whole, {Shape(wider), [&](std::vector<std::int64_t> index) {
                               index.back() -= 2;
                               const bool inside =
                                   index.front() >= 1 && index.front() <= part.size(0) &&
                                   index.back() >= 0 && index.back() < view.size(-1);
                               return inside ? model.value(index) : 7;
                             }});
        // Into a view that is permuted itself.
        const auto back = Tensor::full(queue, row.shape, 7, dtype);
        back.permute(row.order).copy_from(view.contiguous());
        EXPECT_EQ(back.to_vector<std::int64_t>(), from.to_vector<std::int64_t>());
        if (testing::Test::HasFailure()) FAIL() << name_of(dtype) << " " << row.shape.to_string();
      }
  });
}

// Enough bytes that all cores of a CPU take part, and an end that is no whole vector.
TEST(Views, LargeFillsAndClones) {
  on_every_device([](const Queue& queue) {
    for (const auto dtype : {DType::uint8, DType::float16, DType::float32, DType::float64}) {
      const std::int64_t n = 2'100'001;
      const auto filled = Tensor::full(queue, {n}, 93, dtype);
      EXPECT_EQ(filled.to_vector<double>(), std::vector<double>(static_cast<std::size_t>(n), 93));
      const auto numbers = Tensor::random(queue, {n}, 5).astype(dtype);
      const auto part = numbers.narrow(0, 1, n - 1);
      EXPECT_EQ(part.clone().to_vector<double>(), part.to_vector<double>());
    }
  });
}

TEST(Views, BadRequestsNameTheRule) {
  on_every_device([](const Queue& queue) {
    const auto matrix = counting(queue, {4, 6});
    EXPECT_THROW(matrix.reshape({5, 5}), ShapeError);
    EXPECT_THROW(matrix.reshape({-1, -1}), ShapeError);
    EXPECT_THROW(matrix.reshape({-1, 7}), ShapeError);
    EXPECT_THROW(matrix.reshape({-2, 12}), ShapeError);
    EXPECT_THROW(matrix.transpose().view({24}), ShapeError);
    EXPECT_THROW(matrix.permute({0, 0}), ShapeError);
    EXPECT_THROW(matrix.permute({0}), ShapeError);
    EXPECT_THROW(matrix.permute({0, 2}), ShapeError);
    EXPECT_THROW(matrix.expand({4, 7}), ShapeError);
    EXPECT_THROW(matrix.expand({6}), ShapeError);
    EXPECT_THROW(matrix.narrow(0, 3, 2), ShapeError);
    EXPECT_THROW(matrix.narrow(0, -1, 2), ShapeError);
    EXPECT_THROW(matrix.narrow(2, 0, 1), ShapeError);
    EXPECT_THROW(matrix.narrow(0, 1, std::numeric_limits<std::int64_t>::max()), ShapeError);
    EXPECT_THROW(matrix.select(0, 4), ShapeError);
    EXPECT_THROW(matrix.slice(0, 0, 4, 0), ArgumentError);
    EXPECT_THROW(matrix.squeeze(0), ShapeError);
    EXPECT_THROW(matrix.unsqueeze(4), ShapeError);
    EXPECT_THROW(Tensor::from_shape(queue, {}).transpose(), ShapeError);
  });
}

}  // namespace
}  // namespace netcl
