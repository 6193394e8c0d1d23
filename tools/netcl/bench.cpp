// netcl bench: how fast netcl is here, beside the limits of the device and beside other libraries.
#include "netcl/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "command.h"
#include "netcl/netcl.h"
#include "second_compiler.h"

namespace netcl::cli {
namespace {

struct BenchRequest {
  bench::Options options;
  std::string json, report, once;
  bool serve = false, list = false, no_sweeps = false, no_start = false;
};

void show_progress(const std::string& id, std::size_t done, std::size_t of) {
  if (isatty(STDERR_FILENO) != 0)
    fmt::print(stderr, "\r\033[K{}/{}  {}", done, of, id);
  else
    fmt::print(stderr, "{}/{}  {}\n", done, of, id);
  std::fflush(stderr);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw FileError(fmt::format("[bench] {} could not be written", path));
}

// Answers one request as `serve` does, in a process that starts as `netcl train` does.
void serve_once(const BenchRequest& request) {
  std::istringstream requests(request.once);
  const auto serve = [&] { bench::serve(request.options.device, requests, std::cout); };
  if (!compiled_ahead(serve)) serve();
}

int run(BenchRequest request) {
  auto& options = request.options;
  if (!request.once.empty()) {
    serve_once(request);
    return 0;
  }
  if (request.serve) {
    bench::serve(options.device, std::cin, std::cout);
    return 0;
  }
  options.self = std::filesystem::read_symlink("/proc/self/exe").string();
  options.sweeps = !request.no_sweeps;
  options.start_up = !request.no_start && options.filter.empty();
  options.progress = show_progress;
  if (request.list) {
    for (const auto& one : bench::cases(options)) fmt::print("{}\n", one.id);
    return 0;
  }
  if (!request.json.empty()) write(request.json, "");  // before an hour of work, not after it
  options.finished = [&](const bench::Report&, const bench::Row& row) {
    if (request.json.empty()) return;
    std::ofstream file(request.json, std::ios::binary | std::ios::app);
    file << bench::json_line(row);
  };
  const auto report = bench::run(options);
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  fmt::print("{}", bench::table(report));
  if (!request.report.empty()) write(request.report, bench::html(report));
  if (report.interrupted) return interrupt_exit_code();
  for (const auto& row : report.rows)
    for (const auto& one : row.measurements)
      if (one.differs) return kProblem;
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", "measures netcl beside limits and other libraries");
  auto request = std::make_shared<BenchRequest>();
  auto& options = request->options;
  command->add_option("--device", options.device, "a selector, as in `netcl devices`");
  command->add_option("--filter", options.filter, "cases whose name contains it, e.g. matmul");
  command->add_option("--peer", options.peers, "a command that measures another library");
  command->add_option("--rounds", options.rounds, "turns of every contender")
      ->check(CLI::Range(1, 1000));
  command->add_option("--seconds", options.seconds, "of one turn")->check(CLI::Range(0.0, 60.0));
  command->add_option("--json", request->json, "write the measurements to this file, a line each");
  command->add_option("--report", request->report, "write an HTML page with the roofline");
  command->add_flag("--no-sweeps", request->no_sweeps, "without the growth over sizes");
  command->add_flag("--no-start", request->no_start, "without the time to the first step");
  command->add_flag("--list", request->list, "print the cases, run none");
  command->add_flag("--serve", request->serve, "measure what standard input asks for");
  command->add_option("--once", request->once, "measure this one request, as --serve would");
  command->callback([request, &action] { action = [request] { return run(*request); }; });
}

}  // namespace netcl::cli
