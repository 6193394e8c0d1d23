// More than 2^31 elements, where 32-bit indices would wrap. Needs 5 GB of memory and a minute, so
// it runs only when NETCL_TEST_LARGE is set: `make test-large`.
#include <gtest/gtest.h>

#include <cstdlib>

#include "netcl/ops.h"
#include "support/devices.h"

namespace netcl {
namespace {

constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 3;

bool is_wanted() { return std::getenv("NETCL_TEST_LARGE") != nullptr; }

// Where the device allows a buffer of this size at all.
bool fits(const Queue& queue, std::int64_t bytes) {
  return queue.is_cpu() ||
         device_profile(queue).max_mem_alloc_size >= static_cast<std::uint64_t>(bytes);
}

void check_flags(const Tensor& flags, std::int64_t start,
                 const std::vector<std::uint8_t>& expected) {
  const auto part = flags.narrow(0, start, static_cast<std::int64_t>(expected.size()));
  EXPECT_EQ(part.astype(DType::uint8).to_vector<std::uint8_t>(), expected) << "at " << start;
}

TEST(Large, APredicateOverMoreThan32Bits) {
  if (!is_wanted()) GTEST_SKIP() << "NETCL_TEST_LARGE is not set";
  test::on_every_device([](const Queue& queue) {
    if (!fits(queue, kMany)) {
      std::printf("%s: no buffer of %lld bytes\n", queue.name().c_str(),
                  static_cast<long long>(kMany));
      return;
    }
    const auto x = Tensor::from_shape(queue, {kMany}, DType::uint8);
    for (const std::int64_t at : {std::int64_t{1}, std::int64_t{1} << 31, kMany - 1})
      x.narrow(0, at, 1).write(std::vector<std::uint8_t>{5});
    const auto flags = ops::logical_not(x);
    EXPECT_EQ(flags.dtype(), DType::boolean);
    check_flags(flags, 0, {1, 0, 1, 1});
    check_flags(flags, (std::int64_t{1} << 31) - 2, {1, 1, 0, 1, 0});
    // Strided, so that the general kernel is the one that indexes.
    const auto backwards = ops::logical_not(x.slice(0, Tensor::kBegin, Tensor::kEnd, -1));
    check_flags(backwards, 0, {0, 1, 0, 1, 1});
    check_flags(backwards, kMany - 3, {1, 0, 1});
  });
}

}  // namespace
}  // namespace netcl
