// The harness over all ops on every device at hand: quick, because a fresh machine has to compile
// every kernel first. `make selftest` runs all of it.
#include "netcl/selftest.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "netcl/op_info.h"
#include "support/devices.h"

namespace netcl {
namespace {

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// NETCL_SELFTEST_FILTER runs some cases again; NETCL_SELFTEST_PART=0 or 1 every second op, so that
// two processes share the work; NETCL_SELFTEST_STRIDE=16 runs every sixteenth case on every device,
// for sanitizers. Only this test reads them.
std::string wanted_filter() {
  const auto filter = from_environment("NETCL_SELFTEST_FILTER", "");
  const auto part = from_environment("NETCL_SELFTEST_PART", "");
  if (!filter.empty() || part.empty()) return filter;
  std::string names;
  std::size_t index = 0;
  for (const auto& op : list_ops())
    if (std::to_string(index++ % 2) == part) names += op.name + ",";
  return names;
}

TEST(Selftest, every_op_is_right_on_every_device) {
  test::on_every_device([](const Queue& queue) {
    SelftestOptions options;
    options.filter = wanted_filter();
    options.quick = true;
    // Only where kernels have to be compiled; the CPU backend has it all. A case that is asked for
    // by name always runs.
    if (from_environment("NETCL_SELFTEST_FILTER", "").empty())
      options.stride =
          std::stoul(from_environment("NETCL_SELFTEST_STRIDE", queue.is_cpu() ? "1" : "4"));
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
