// Tuning what a kernel is compiled with (work per item, tile sizes, vector widths) together with
// its work-group size. An op describes its problems once; the search, the store, `netcl tune` and
// the report work on the description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/dtype.h"
#include "netcl/opencl.h"
#include "netcl/tuning_store.h"

namespace netcl {

using Parameters = std::map<std::string, std::int64_t>;

// A tunable has one name in the kernel, the search space, the store and the launch.
struct Tunable {
  std::string name;                  // "WG", "ITEMS", "TILE_M"
  std::vector<std::int64_t> values;  // to try
};

struct TunableProblem {
  std::string op;     // "cast"
  std::string label;  // "float32 to float16, 1048576 elements"
  TuningKey key;
  std::vector<Tunable> tunables;
  Parameters defaults;  // what is taken when nothing is stored
  // Why a combination is impossible on this device; "" when it is possible. May be empty.
  std::function<std::string(const Parameters&)> declines;
  // Compiles with the parameters and returns what enqueues one run on scratch memory.
  std::function<std::function<void()>(const Parameters&)> prepare;
  // What the last run wrote, to be compared with what the defaults wrote.
  std::function<std::vector<std::byte>()> output;
  DType output_dtype = DType::uint8;
};

// Measures every possible combination, the defaults first, and returns the fastest whose output
// equals theirs. The budget (0: none) ends the search early with the best so far. Ctrl+C throws
// Interrupted. Nothing is stored.
TuningRecord tune_parameters(const Queue& queue, const TunableProblem& problem,
                             double budget_seconds = 0);

// ---- the ops that can be tuned ahead

using ProblemSource = std::function<std::vector<TunableProblem>(const Queue&)>;
void register_tunable_op(const std::string& op, ProblemSource source);  // replaces an equal name
std::vector<std::string> tunable_ops();
// ArgumentError that lists the known ones for another name.
std::vector<TunableProblem> tunable_problems(const std::string& op, const Queue& queue);

// Makes the library's own kernels known to the functions above.
void register_builtin_tunables();

struct TunedProblem {
  std::string op, label;
  TuningRecord record;
};

// One self-contained HTML page: a picture of the time per candidate of every problem, and how much
// faster the best is than the default.
std::string tuning_report_html(const std::string& device,
                               const std::vector<TunedProblem>& problems);

}  // namespace netcl
