#include "netcl/shape.h"

#include <gtest/gtest.h>

#include "netcl/error.h"

namespace netcl {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{2, 3}).to_string(), "(2, 3)");
  EXPECT_EQ((Shape{2}).to_string(), "(2,)");
}

TEST(Shape, RejectsNegativeSizesAndOverflow) {
  EXPECT_THROW(Shape({2, -1}), ShapeError);
  EXPECT_THROW(Shape({std::int64_t{1} << 32, std::int64_t{1} << 32}), ShapeError);
  // A zero does not excuse the rest: dropping the axis must leave a valid shape.
  EXPECT_THROW(Shape({0, std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
  EXPECT_EQ(Shape({std::int64_t{1} << 31, std::int64_t{1} << 31}).numel(), std::int64_t{1} << 62);
}

TEST(Shape, Contiguity) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_TRUE(is_contiguous({2, 1, 4}, {4, 99, 1}));
  EXPECT_FALSE(is_contiguous({2, 4}, {1, 2}));
  EXPECT_TRUE(is_contiguous({0, 4}, {7, 7}));
}

TEST(Shape, AxesCountFromBothEnds) {
  EXPECT_EQ(normalize_axis(-1, 3, "op"), 2);
  EXPECT_EQ(normalize_axis(0, 3, "op"), 0);
  EXPECT_THROW(normalize_axis(3, 3, "op"), ShapeError);
  EXPECT_THROW(normalize_axis(-4, 3, "op"), ShapeError);
  EXPECT_THROW(normalize_axis(0, 0, "op"), ShapeError);
}

}  // namespace
}  // namespace netcl
