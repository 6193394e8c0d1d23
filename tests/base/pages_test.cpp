#include "base/pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace netcl {
namespace {

TEST(Pages, AreZeroAlignedAndAllThere) {
  for (const std::size_t bytes : {std::size_t{1}, Pages::kHuge - 1, Pages::kHuge, Pages::kHuge + 1,
                                  3 * Pages::kHuge + 12345}) {
    const Pages pages(bytes);
    ASSERT_TRUE(pages);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % Pages::kHuge, 0U);
    auto* const first = static_cast<unsigned char*>(pages.data());
    for (std::size_t i = 0; i < bytes; i += 4096) {
      ASSERT_EQ(first[i], 0) << i;
      first[i] = 1;
    }
    first[bytes - 1] = 2;
  }
}

TEST(Pages, NothingForNothingAndForTooMuch) {
  EXPECT_FALSE(Pages());
  EXPECT_FALSE(Pages(0));
  EXPECT_FALSE(Pages(std::size_t{1} << 60));
  EXPECT_FALSE(Pages(std::numeric_limits<std::size_t>::max()));
}

TEST(Pages, HaveOneOwner) {
  Pages first(Pages::kHuge);
  auto* const memory = first.data();
  Pages second(std::move(first));
  EXPECT_EQ(second.data(), memory);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the promise
  first = std::move(second);
  EXPECT_EQ(first.data(), memory);
}

}  // namespace
}  // namespace netcl
