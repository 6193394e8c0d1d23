#include "tune/first_use.h"

#include <algorithm>

#include "cl/recording.h"
#include "tune/results.h"

namespace netcl::tune {
namespace {

thread_local bool t_measuring = false;

struct Measuring {
  Measuring() { t_measuring = true; }
  ~Measuring() { t_measuring = false; }
};

}  // namespace

bool is_usable(const std::vector<Tunable>& tunables,
               const std::function<std::string(const Parameters&)>& declines,
               const TuningRecord& record) {
  for (const auto& [name, values] : tunables) {
    const auto found = record.parameters.find(name);
    if (found == record.parameters.end() ||
        std::find(values.begin(), values.end(), found->second) == values.end())
      return false;
  }
  return !declines || declines(record.parameters).empty();
}

bool is_measuring() { return t_measuring; }

Parameters measure_now(const Queue& queue, const std::function<TunableProblem()>& make) {
  const Measuring guard;
  const cl::RecordingScope unrecorded(nullptr);
  const auto problem = make();
  auto record = tune_parameters(queue, problem);
  const auto best = record.parameters;
  keep(problem.key, std::move(record));
  return best;
}

}  // namespace netcl::tune
