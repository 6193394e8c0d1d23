// The harness over all ops on every device at hand.
#include "netcl/selftest.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/devices.h"

namespace netcl {
namespace {

// NETCL_SELFTEST_FILTER is read by this test alone, to run one case again.
std::string filter_from_environment() {
  const char* filter = std::getenv("NETCL_SELFTEST_FILTER");
  return filter == nullptr ? "" : filter;
}

TEST(Selftest, every_op_is_right_on_every_device) {
  test::on_every_device([](const Queue& queue) {
    SelftestOptions options;
    options.filter = filter_from_environment();
    const auto report = selftest(queue, options);
    for (const auto& failure : report.failures)
      ADD_FAILURE() << failure.id << ": " << failure.message
                    << "\n  again: netcl selftest --device '" << queue.name() << "' --filter '"
                    << failure.id << "'";
    EXPECT_GT(report.total.run, 0u);
    std::printf("%s: %zu cases, %zu declined, %.1f s\n", queue.name().c_str(), report.total.run,
                report.total.declined, report.seconds);
  });
}

}  // namespace
}  // namespace netcl
