#include "netcl/selftest.h"

#include <chrono>

#include "netcl/runtime.h"
#include "ops/registry.h"
#include "selftest/cases.h"
#include "selftest/filter.h"

namespace netcl {

namespace {

using selftest_detail::Filter, selftest_detail::Outcome;

void add(const SelftestCounts& more, SelftestCounts& counts) {
  counts.run += more.run;
  counts.failed += more.failed;
  counts.declined += more.declined;
  counts.empty += more.empty;
  counts.repeated += more.repeated;
  counts.kept += more.kept;
}

// Cases of a kernel follow one another.
SelftestCounts& counts_of(const selftest_detail::Case& one, SelftestReport& report) {
  auto name = one.op->name + "/" + one.variant;
  if (report.kernels.empty() || report.kernels.back().first != name)
    report.kernels.emplace_back(std::move(name), SelftestCounts{});
  return report.kernels.back().second;
}

// The cases of one op; false when the run ends here.
bool run_op(const OpDef& op, const Queue& queue, const SelftestOptions& options,
            const Filter& filter, SelftestReport& report) {
  const auto samples = op.samples();
  for (const auto& one : selftest_detail::cases_of(op, samples, queue, options)) {
    const auto id = one.id();
    if (!filter.matches(id)) continue;
    try {
      check_interrupt();
      if (options.progress) options.progress(id, report.total.run);
      const auto outcome = run_case(one, queue, options);
      const bool declined = outcome.kind == Outcome::Kind::declined;
      const bool failed = outcome.kind == Outcome::Kind::failed;
      const SelftestCounts counts{declined ? 0U : 1U,
                                  failed ? 1U : 0U,
                                  declined ? 1U : 0U,
                                  outcome.is_empty ? 1U : 0U,
                                  outcome.is_repeated ? 1U : 0U,
                                  outcome.is_kept ? 1U : 0U};
      add(counts, counts_of(one, report));
      add(counts, report.total);
      if (!failed) continue;
      report.failures.push_back({id, outcome.message});
    } catch (const Interrupted&) {
      report.interrupted = true;
      return false;
    }
    if (report.failures.size() >= options.max_failures) return false;
  }
  return true;
}

}  // namespace

SelftestReport selftest_detail::run_ops(const std::vector<const OpDef*>& ops, const Queue& queue,
                                        const SelftestOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Filter filter(options.filter);
  SelftestReport report;
  for (const auto* op : ops) {
    if (!filter.may_match_prefix(op->name + "/")) continue;
    const auto kernels_before = report.kernels.size();
    const bool go_on = run_op(*op, queue, options, filter, report);
    SelftestCounts counts;
    for (auto i = kernels_before; i < report.kernels.size(); ++i)
      add(report.kernels[i].second, counts);
    if (counts.run + counts.declined > 0) report.ops.emplace_back(op->name, counts);
    if (!go_on) break;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

SelftestReport selftest(const Queue& queue, const SelftestOptions& options) {
  return selftest_detail::run_ops(all_ops(), queue, options);
}

std::vector<std::string> selftest_cases(const Queue& queue, const SelftestOptions& options) {
  const selftest_detail::Filter wanted(options.filter);
  std::vector<std::string> ids;
  for (const auto* op : all_ops()) {
    if (!wanted.may_match_prefix(op->name + "/")) continue;
    const auto samples = op->samples();
    for (const auto& one : selftest_detail::cases_of(*op, samples, queue, options))
      if (auto id = one.id(); wanted.matches(id)) ids.push_back(std::move(id));
  }
  return ids;
}

}  // namespace netcl
