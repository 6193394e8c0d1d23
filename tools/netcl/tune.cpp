// netcl tune: measures the built-in kernels on a device and keeps what is best.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>

#include "command.h"
#include "netcl/netcl.h"

namespace netcl::cli {
namespace {

struct TuneRequest {
  std::vector<std::string> ops;
  std::string device = "auto";
  std::string budget;
  std::string report;
  bool again = false;
};

// "60", "60s", "2m" in seconds; 0 for none.
double seconds_of(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  const auto unit = text.substr(end);
  const double factor = unit == "m" ? 60 : unit.empty() || unit == "s" ? 1 : -1;
  if (!(value > 0) || factor < 0)
    throw ArgumentError(
        fmt::format("[tune] the budget must be a time such as 60s or 2m: {}", text));
  return value * factor;
}

class ProblemProgress {
 public:
  explicit ProblemProgress(std::size_t total)
      : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

  void show(std::size_t done, const std::string& what) const {
    if (!terminal_) return;
    constexpr std::size_t kWidth = 24;
    const auto filled = total_ == 0 ? kWidth : done * kWidth / total_;
    fmt::print(stderr, "\r\033[K[{}{}] {}/{} {}", std::string(filled, '#'),
               std::string(kWidth - filled, '.'), done, total_, what);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  std::size_t total_;
  bool terminal_;
};

std::string text_of(const Parameters& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

void print_row(const TunedProblem& problem) {
  const auto& record = problem.record;
  fmt::print("{:<8} {:<44} {:>10.2f} {:>10.2f} {:>7.2f}x  {}\n", problem.op, problem.label,
             record.default_us, record.runtime_us, record.default_us / record.runtime_us,
             text_of(record.parameters));
}

void write_report(const std::string& path, const std::string& device,
                  const std::vector<TunedProblem>& done) {
  std::ofstream out(path, std::ios::binary);
  out << tuning_report_html(device, done);
  out.close();
  if (!out) throw FileError(fmt::format("[tune] the report must be writable: {}", path));
  fmt::print("report: {}\n", path);
}

std::vector<TunableProblem> wanted_problems(const TuneRequest& request, const Queue& queue) {
  std::vector<TunableProblem> problems;
  for (const auto& op : request.ops.empty() ? tunable_ops() : request.ops)
    for (auto& problem : tunable_problems(op, queue)) problems.push_back(std::move(problem));
  return problems;
}

int run(const TuneRequest& request) {
  const auto budget = seconds_of(request.budget);
  const auto device = manager().default_device(request.device);
  if (device.queue.is_cpu())
    throw DeviceError("[tune] tuning needs an OpenCL device: " + device.device_name +
                      " is the CPU backend (`netcl doctor` says what is missing)");
  register_builtin_tunables();
  const auto problems = wanted_problems(request, device.queue);
  fmt::print("tuning {} problems on {}\n\n{:<8} {:<44} {:>10} {:>10} {:>8}\n", problems.size(),
             device.device_name, "op", "problem", "default us", "best us", "faster");
  const ProblemProgress progress(problems.size());
  std::vector<TunedProblem> done;
  const auto start = std::chrono::steady_clock::now();
  bool interrupted = false, out_of_time = false;
  for (const auto& problem : problems) {
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
    out_of_time = budget > 0 && used.count() >= budget;
    if (out_of_time) break;
    progress.show(done.size(), problem.op + " " + problem.label);
    const auto known = default_tuning_store().lookup(problem.key);
    try {
      done.push_back({problem.op, problem.label,
                      known && !request.again ? *known : tune_parameters(device.queue, problem)});
    } catch (const Interrupted&) {
      interrupted = true;
      break;
    }
    default_tuning_store().record(problem.key, done.back().record);
    progress.clear();
    print_row(done.back());
    std::fflush(stdout);
  }
  progress.clear();
  default_tuning_store().save();
  fmt::print("\n{} of {} problems tuned; results: {}\n", done.size(), problems.size(),
             default_tuning_store().path());
  if (!request.report.empty()) write_report(request.report, device.device_name, done);
  if (interrupted || out_of_time)
    fmt::print("{}: what is done is kept; the same command tunes the rest\n",
               interrupted ? "interrupted" : "the time is up");
  return interrupted ? 130 : 0;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("tune", "measures the built-in kernels and keeps the best");
  auto request = std::make_shared<TuneRequest>();
  command->add_option("op", request->ops, "what to tune (default: everything)");
  command->add_option("--device", request->device, "a selector, as in `netcl devices`");
  command->add_option("--budget", request->budget, "stop after this time, e.g. 60s or 2m");
  command->add_flag("--again", request->again, "measure also what is already in the store");
  command->add_option("--report", request->report, "write an HTML page with pictures");
  command->callback([request, &action] { action = [request] { return run(*request); }; });
}

}  // namespace netcl::cli
