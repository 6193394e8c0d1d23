// The self-test: every op on samples of its own, every variant forced in turn, against plain double
// precision references, on the device that you have. `netcl selftest` is its command.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "netcl/opencl.h"

namespace netcl {

struct SelftestFailure {
  std::string id;  // "conv2d/winograd/f32/8x64x56x56"; also the filter that runs it alone
  std::string message;
};

struct SelftestCounts {
  std::size_t run = 0, failed = 0, declined = 0;  // declined: the variant is not for this problem
  std::size_t empty = 0;  // of those that ran: results without elements, for which no kernel runs
  // Of those that ran: the call that came back was launched from what the first ones had launched,
  // and computed with forms of its weights that were kept from them.
  std::size_t repeated = 0, kept = 0;
};

struct SelftestReport {
  SelftestCounts total;
  std::vector<std::pair<std::string, SelftestCounts>> ops;
  std::vector<std::pair<std::string, SelftestCounts>> kernels;  // by "op/kernel"
  std::vector<SelftestFailure> failures;
  double seconds = 0;
  bool interrupted = false;  // Ctrl+C ended the run: the cases after it were not tried
};

struct SelftestOptions {
  // Cases whose id matches; '*' stands for any characters, a filter without one for a part of the
  // id from its beginning. Several are separated by commas; empty: all.
  std::string filter;
  bool gradients = true;
  // Every kernel in its first dtype; other dtypes only as the selector would run them, and not as
  // views: a fraction of the kernels to compile, which is most of the time of a first run.
  bool quick = false;
  // 4: every kernel on a quarter of its samples, in turn, so that every sample still runs on some
  // of the kernels; of the dtypes after the first one per op; the gradients of every fourth op. For
  // a first run that has to compile everything in little time.
  std::size_t stride = 1;
  // Every call again, twice on the same tensors and once on others with the same values: netcl
  // remembers calls and forms of weights, and all must have the same bits.
  bool repeats = true;
  std::size_t max_failures = 50;  // the run ends there
  // Told before each case.
  std::function<void(const std::string& id, std::size_t done)> progress;
};

// Failures are in the report, and so is Ctrl+C.
SelftestReport selftest(const Queue& queue, const SelftestOptions& options = {});

// The ids that a filter selects on a device, without running them.
std::vector<std::string> selftest_cases(const Queue& queue, const SelftestOptions& options = {});

}  // namespace netcl
