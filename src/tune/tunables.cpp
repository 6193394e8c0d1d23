// The search over parameters, and the registry of ops that have some.
#include "netcl/tunables.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "base/interrupt.h"
#include "tune/compare.h"

namespace netcl {
namespace {

using Clock = std::chrono::steady_clock;
using Candidate = TuningRecord::Candidate;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Registry {
  std::mutex mutex;
  std::map<std::string, ProblemSource> sources;
};

Registry& registry() {
  static auto* instance = new Registry();
  return *instance;
}

// All combinations in the order of the lists, the defaults first.
std::vector<Parameters> combinations(const TunableProblem& problem) {
  std::vector<Parameters> result = {{}};
  for (const auto& tunable : problem.tunables) {
    std::vector<Parameters> longer;
    for (const auto& partial : result)
      for (const auto value : tunable.values) {
        longer.push_back(partial);
        longer.back()[tunable.name] = value;
      }
    result = std::move(longer);
  }
  std::erase(result, problem.defaults);
  result.insert(result.begin(), problem.defaults);
  return result;
}

// The median time of one run in microseconds. Short runs are repeated between two waits, so that
// the wait is not what is measured.
double median_us(const Queue& queue, const std::function<void()>& run) {
  constexpr int kSamples = 5;
  constexpr double kShortest = 200e-6;
  run();
  queue.finish();
  auto start = Clock::now();
  run();
  queue.finish();
  const auto repeats = std::clamp(static_cast<int>(kShortest / seconds_since(start)), 1, 50);
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    start = Clock::now();
    for (int i = 0; i < repeats; ++i) run();
    queue.finish();
    samples.push_back(seconds_since(start) * 1e6 / repeats);
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

// Measures one combination; `expected` is what the defaults wrote, filled by the first call.
Candidate measure(const Queue& queue, const TunableProblem& problem, const Parameters& parameters,
                  std::vector<std::byte>& expected) {
  Candidate candidate{{}, parameters, std::numeric_limits<double>::infinity(), ""};
  if (problem.declines) candidate.note = problem.declines(parameters);
  if (!candidate.note.empty()) return candidate;
  try {
    const auto run = problem.prepare(parameters);
    candidate.runtime_us = median_us(queue, run);
    const auto output = problem.output();
    if (expected.empty())
      expected = output;
    else if (!tune::same_result(expected, output, problem.output_dtype)) {
      candidate.runtime_us = std::numeric_limits<double>::infinity();
      candidate.note = "wrong result";
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    candidate.runtime_us = std::numeric_limits<double>::infinity();
    candidate.note = error.what();
  }
  return candidate;
}

}  // namespace

TuningRecord tune_parameters(const Queue& queue, const TunableProblem& problem,
                             double budget_seconds) {
  const auto start = Clock::now();
  TuningRecord record;
  std::vector<std::byte> expected;
  for (const auto& parameters : combinations(problem)) {
    interrupt::poll();
    record.candidates.push_back(measure(queue, problem, parameters, expected));
    check<DeviceError>(std::isfinite(record.candidates.front().runtime_us),
                       "[tune {}] the default parameters must run: {}", problem.op,
                       record.candidates.front().note);
    if (budget_seconds > 0 && seconds_since(start) > budget_seconds) break;
  }
  const auto best = std::min_element(
      record.candidates.begin(), record.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.runtime_us < b.runtime_us; });
  record.parameters = best->parameters;
  record.runtime_us = best->runtime_us;
  record.default_us = record.candidates.front().runtime_us;
  return record;
}

void register_tunable_op(const std::string& op, ProblemSource source) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  all.sources[op] = std::move(source);
}

std::vector<std::string> tunable_ops() {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, source] : all.sources) names.push_back(name);
  return names;
}

std::vector<TunableProblem> tunable_problems(const std::string& op, const Queue& queue) {
  ProblemSource source;
  {
    auto& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.sources.find(op);
    if (found != all.sources.end()) source = found->second;
  }
  check<ArgumentError>(static_cast<bool>(source), "[tune] the op must be one of {}: '{}'",
                       join(tunable_ops(), ", "), op);
  return source(queue);
}

}  // namespace netcl
