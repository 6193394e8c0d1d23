// netcl selftest: every op on this machine's device against its reference.
#include "netcl/selftest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct SelftestRequest {
  std::string device = "auto";
  std::string filter;
  bool no_gradients = false, quick = false, once = false, list = false, json = false;
  std::size_t stride = 1;
};

// One line that is written over on a terminal, a line every ten seconds elsewhere.
class CaseProgress {
 public:
  explicit CaseProgress(std::size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

  void before(const std::string& id) {
    const auto now = Clock::now();
    const std::chrono::duration<double> elapsed = now - start_, since = now - shown_;
    ++count_;
    if (since.count() < (terminal_ ? 0.05 : 10.0)) return;
    shown_ = now;
    if (terminal_) {
      auto line = fmt::format("{}/{}  {:.0f} s  {}", count_, total_, elapsed.count(), id);
      const auto width = terminal_width(STDERR_FILENO) - 1;
      if (line.size() > width) line.resize(width);
      fmt::print(stderr, "\r\033[K{}", line);
    } else {
      fmt::print(stderr, "{} of {} cases, {:.0f} s, now {}\n", count_, total_, elapsed.count(), id);
    }
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::size_t total_, count_ = 0;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

SelftestOptions options_of(const SelftestRequest& request) {
  SelftestOptions options;
  options.filter = request.filter;
  options.gradients = !request.no_gradients;
  options.quick = request.quick;
  options.stride = request.stride;
  options.repeats = !request.once;
  return options;
}

int no_such_case(const SelftestRequest& request, const Queue& queue) {
  const auto all = selftest_cases(queue);
  fmt::print(stderr,
             "netcl: error: [selftest] the filter must match a case: '{}' matches none{}.\n"
             "Ids are op/kernel/dtype/sample, e.g. {}; a filter is the beginning of one in whole\n"
             "parts ('add', 'add/gradient') or a pattern with '*' ('*/f16/*'), several separated "
             "by commas.\n`netcl selftest --list` prints them all.\n",
             request.filter, request.no_gradients ? " (without gradients)" : "",
             all.empty() ? "add/scalar/f32/17" : all.front());
  return kUsage;
}

void print_report(const SelftestRequest& request, const SelftestReport& report) {
  std::size_t width = 5;
  for (const auto& [op, counts] : report.ops) width = std::max(width, op.size());
  fmt::print("{:<{}}  {:>7}  {:>7}  {:>9}\n", "op", width, "cases", "failed", "declined");
  const auto row = [width](const std::string& name, const SelftestCounts& counts) {
    fmt::print("{:<{}}  {:>7}  {:>7}  {:>9}\n", name, width, counts.run,
               counts.failed == 0 ? "-" : std::to_string(counts.failed),
               counts.declined == 0 ? "-" : std::to_string(counts.declined));
  };
  for (const auto& [op, counts] : report.ops) row(op, counts);
  row("total", report.total);
  for (const auto& failure : report.failures)
    fmt::print("\nFAILED {}\n  {}\n  again: netcl selftest --device {} --filter {}\n", failure.id,
               failure.message, shell_word(request.device), shell_word(failure.id));
}

json report_json(const SelftestReport& report, const std::string& device) {
  json out = {{"device", device},
              {"passed", report.total.run - report.total.failed},
              {"failed", report.total.failed},
              {"declined", report.total.declined},
              {"seconds", report.seconds},
              {"interrupted", report.interrupted},
              {"ops", json::array()},
              {"kernels", json::array()},
              {"failures", json::array()}};
  const auto row = [](const char* kind, const std::string& name, const SelftestCounts& counts) {
    return json{{kind, name},
                {"cases", counts.run},
                {"failed", counts.failed},
                {"declined", counts.declined},
                {"empty", counts.empty},
                {"repeated", counts.repeated},
                {"kept", counts.kept}};
  };
  for (const auto& [op, counts] : report.ops) out["ops"].push_back(row("op", op, counts));
  for (const auto& [kernel, counts] : report.kernels)
    out["kernels"].push_back(row("kernel", kernel, counts));
  for (const auto& failure : report.failures)
    out["failures"].push_back({{"id", failure.id}, {"message", failure.message}});
  return out;
}

int exit_code(const SelftestReport& report) {
  if (report.interrupted) return interrupt_exit_code();
  return report.total.failed == 0 ? 0 : kProblem;
}

int run(const SelftestRequest& request) {
  const auto device = manager().default_device(request.device);
  auto options = options_of(request);
  const auto ids = selftest_cases(device.queue, options);
  if (ids.empty()) return no_such_case(request, device.queue);
  if (request.list) {
    for (const auto& id : ids) fmt::print("{}\n", id);
    return 0;
  }
  if (!request.json) fmt::print("{} cases on {}\n\n", ids.size(), device.device_name);
  std::fflush(stdout);
  CaseProgress progress(ids.size());
  options.progress = [&progress](const std::string& id, std::size_t) { progress.before(id); };
  const auto report = selftest(device.queue, options);
  progress.clear();
  if (request.json) {
    fmt::print("{}\n", report_json(report, device.device_name).dump(2));
    return exit_code(report);
  }
  print_report(request, report);
  if (report.interrupted) fmt::print("\ninterrupted: the cases after this were not tried\n");
  if (report.failures.size() >= options.max_failures)
    fmt::print("\nstopped after {} failures: the cases after this were not tried\n",
               report.failures.size());
  fmt::print("\n{:.1f} s on {}\n{} passed, {} failed\n", report.seconds, device.device_name,
             report.total.run - report.total.failed, report.total.failed);
  return exit_code(report);
}

}  // namespace

void add_selftest(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("selftest", "checks every op on a device against references");
  auto request = std::make_shared<SelftestRequest>();
  command->add_option("--device", request->device, "a selector, as in `netcl devices`");
  command->add_option("--filter", request->filter, "cases, e.g. add or 'matmul/*/f16/*'");
  command->add_flag("--no-gradients", request->no_gradients, "without the checks of gradients");
  command->add_flag("--quick", request->quick,
                    "other dtypes than the first only with the kernel that would be chosen");
  command
      ->add_option("--stride", request->stride,
                   "each kernel on every N-th of its samples, one dtype besides the first")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--once", request->once, "each call once, not four times");
  command->add_flag("--list", request->list, "print the ids of the cases, run none");
  command->add_flag("--json", request->json, "the report as JSON");
  command->callback([request, &action] { action = [request] { return run(*request); }; });
}

}  // namespace netcl::cli
