// Transforms and the random numbers behind them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "netcl/data.h"
#include "support/host_arrays.h"

namespace netcl::data {
namespace {

using test::array_of;
using test::patterned;
using test::same_bits;

// Part of the interface: a run can be repeated with a later version and on another platform.
constexpr std::uint32_t kFirstWord = 4070450678;
const std::vector<std::int64_t> kOrder = {1, 3, 7, 8, 9, 4, 5, 6, 0, 2};

HostArray run(const Transform& transform, const HostArray& image, std::uint64_t sample = 0) {
  return apply({transform}, image, 1, 2, sample);
}

TEST(RandomStream, IsDecidedByItsNumbersAlone) {
  const auto draw = [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample,
                       std::uint32_t transform) {
    RandomStream stream(seed, epoch, sample, transform);
    std::vector<std::uint32_t> words;
    for (int i = 0; i < 9; ++i) words.push_back(stream.next());
    return words;
  };
  EXPECT_EQ(draw(1, 2, 3, 4), draw(1, 2, 3, 4));
  std::set<std::vector<std::uint32_t>> all;
  for (std::uint64_t i = 0; i < 3; ++i)
    for (std::uint64_t j = 0; j < 3; ++j)
      for (std::uint64_t k = 0; k < 3; ++k)
        for (std::uint32_t l = 0; l < 3; ++l) {
          all.insert(draw(i, j, k, l));
          all.insert(draw(i << 32, j << 32, k << 32, l));
        }
  EXPECT_EQ(all.size(), 81u + 81u - 3u);  // those with three zeros are the same
  EXPECT_EQ(draw(1, 2, 3, 4)[0], kFirstWord);
}

TEST(RandomStream, IsEven) {
  RandomStream stream(5, 0, 0);
  int counts[7] = {};
  double sum = 0;
  for (int i = 0; i < 70000; ++i) {
    ++counts[stream.below(7)];
    const auto value = stream.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  for (const auto count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_NEAR(sum / 70000, 0.5, 0.01);
  EXPECT_EQ(stream.below(1), 0u);
  EXPECT_THROW(stream.below(0), ArgumentError);
}

TEST(Shuffled, IsAPermutationThatSeedAndEpochDecide) {
  for (const std::int64_t count : {0, 1, 2, 3, 1000}) {
    auto order = shuffled(count, 3, 4);
    EXPECT_EQ(order, shuffled(count, 3, 4));
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_NE(shuffled(1000, 3, 4), shuffled(1000, 3, 5));
  EXPECT_NE(shuffled(1000, 3, 4), shuffled(1000, 4, 4));
  EXPECT_EQ(shuffled(10, 1, 0), kOrder);
  // Each place gets each number equally often.
  int counts[4][4] = {};
  for (std::uint64_t epoch = 0; epoch < 4000; ++epoch) {
    const auto order = shuffled(4, 9, epoch);
    for (std::size_t i = 0; i < 4; ++i) ++counts[i][order[i]];
  }
  for (const auto& row : counts)
    for (const auto count : row) EXPECT_NEAR(count, 1000, 150);
  EXPECT_THROW(shuffled(-1, 0, 0), ArgumentError);
}

TEST(ToFloat, DividesBy255) {
  const auto result = run(to_float(), array_of<std::uint8_t>({1, 1, 3}, {0, 51, 255}));
  EXPECT_TRUE(same_bits(result, array_of<float>({1, 1, 3}, {0.0f, 0.2f, 1.0f})));
  EXPECT_TRUE(same_bits(run(to_float(), result), result));
  EXPECT_THROW(run(to_float(), patterned({1, 1, 1}, DType::int32)), DtypeError);
}

TEST(Normalise, PerChannel) {
  const auto image = array_of<float>({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(same_bits(run(normalise({1, 3}, {2, 4}), image),
                        array_of<float>({2, 1, 2}, {0, 0.5f, 0, 0.25f})));
  EXPECT_THROW(run(normalise({1}, {2}), image), ShapeError);
  EXPECT_THROW(run(normalise({1, 1}, {2, 2}), patterned({2, 1, 1}, DType::uint8)), DtypeError);
  EXPECT_THROW(normalise({1}, {0}), ArgumentError);
  EXPECT_THROW(normalise({1}, {1, 2}), ArgumentError);
  EXPECT_THROW(normalise({}, {}), ArgumentError);
}

TEST(HorizontalFlip, MirrorsAboutHalf) {
  const auto image = array_of<std::int32_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto mirrored = array_of<std::int32_t>({2, 1, 3}, {3, 2, 1, 6, 5, 4});
  EXPECT_TRUE(same_bits(run(random_horizontal_flip(1), image), mirrored));
  EXPECT_TRUE(same_bits(run(random_horizontal_flip(0), image), image));
  int flips = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    flips += same_bits(run(random_horizontal_flip(), image, i), mirrored) ? 1 : 0;
  EXPECT_NEAR(flips, 500, 80);
  EXPECT_EQ(image.at(0), 1);  // the dataset's own array is left alone
  EXPECT_THROW(random_horizontal_flip(1.5), ArgumentError);
  EXPECT_THROW(run(random_horizontal_flip(), patterned({4}, DType::uint8)), ShapeError);
}

TEST(RandomCrop, CoversEveryPlaceOfThePaddedImage) {
  const auto image = array_of<std::uint8_t>({1, 2, 2}, {1, 2, 3, 4});
  std::set<std::vector<int>> seen;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto part = run(random_crop(2, 2, 1), image, i);
    ASSERT_EQ(part.shape(), (Shape{1, 2, 2}));
    std::vector<int> values;
    for (int j = 0; j < 4; ++j) values.push_back(static_cast<int>(part.at(j)));
    seen.insert(values);
  }
  const std::set<std::vector<int>> all = {{0, 0, 0, 1}, {0, 0, 1, 2}, {0, 0, 2, 0},
                                          {0, 1, 0, 3}, {1, 2, 3, 4}, {2, 0, 4, 0},
                                          {0, 3, 0, 0}, {3, 4, 0, 0}, {4, 0, 0, 0}};
  EXPECT_EQ(seen, all);
  const auto color = patterned({3, 5, 6}, DType::float64);
  EXPECT_TRUE(same_bits(run(random_crop(5, 6), color), color));
  EXPECT_EQ(run(random_crop(1, 20, 9), color).shape(), (Shape{3, 1, 20}));
  EXPECT_THROW(run(random_crop(6, 6), color), ShapeError);
  EXPECT_THROW(random_crop(0, 1), ArgumentError);
  EXPECT_THROW(random_crop(1, 1, -1), ArgumentError);
}

TEST(Apply, EachTransformHasItsOwnNumbers) {
  const auto image = patterned({3, 8, 8}, DType::uint8);
  const Transform drawing = [](const HostArray& given, RandomStream& random) {
    random.next();
    random.next();
    return given;
  };
  const Transform still = [](const HostArray& given, RandomStream&) { return given; };
  for (std::uint64_t i = 0; i < 20; ++i)
    EXPECT_TRUE(same_bits(apply({drawing, random_crop(4, 4)}, image, 1, 2, i),
                          apply({still, random_crop(4, 4)}, image, 1, 2, i)));
}

}  // namespace
}  // namespace netcl::data
