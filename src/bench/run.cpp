// Takes turns: for each case every contender measures a little, then again, so that a noisy minute
// of the machine hits all of them.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"
#include "base/format.h"
#include "bench/cases.h"
#include "bench/peer.h"

namespace netcl::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Results agree within this part of the largest probed element. Winograd's transforms and other
// orders of summation stay well below it; a wrong kernel does not.
constexpr double kTolerance = 1e-3;

struct Contender {
  Peer* peer;
  std::string contender, name;
};

struct Field {
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Contender> contenders;  // netcl on the device comes first
  std::unique_ptr<Peer> limits;       // a process of its own: its memory is not netcl's
};

std::vector<std::string> own_command(const Options& options, const std::string& device) {
  return {options.self, "bench", "--serve", "--device", device};
}

void add(Field& field, std::unique_ptr<Peer> peer) {
  for (const auto& contender : peer->contenders())
    field.contenders.push_back(
        {peer.get(), contender, contender.empty() ? peer->name() : peer->name() + " " + contender});
  field.peers.push_back(std::move(peer));
}

Field start(const Options& options, Report& report) {
  Field field;
  auto own = std::make_unique<Peer>(own_command(options, options.device));
  report.device = own->device();
  report.threads = own->threads();
  const bool is_cpu = own->name() == "netcl cpu";
  add(field, std::move(own));
  if (!is_cpu) {
    add(field, std::make_unique<Peer>(own_command(options, "cpu")));
    field.limits = std::make_unique<Peer>(own_command(options, options.device));
  }
  for (const auto& command : options.peers) try {
      add(field, std::make_unique<Peer>(std::vector<std::string>{"sh", "-c", "exec " + command}));
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      report.notes.emplace_back(error.what());
    }
  return field;
}

struct Collected {
  std::vector<double> seconds, probe;
  std::vector<std::string> remarks;
  double memory = 0;
  std::string declined;
};

void take(Collected& into, const json& answer) {
  if (answer.contains("declined")) {
    into.declined = answer["declined"].get<std::string>();
    return;
  }
  for (const auto& value : answer.value("seconds", json::array()))
    if (value.is_number()) into.seconds.push_back(value.get<double>());
  into.probe.clear();
  for (const auto& value : answer.value("probe", json::array()))
    into.probe.push_back(value.is_number() ? value.get<double>() : NAN);
  into.memory = std::max(into.memory, answer.value("memory", 0.0));
  into.remarks.clear();
  for (const auto& value : answer.value("remarks", json::array()))
    if (value.is_string()) into.remarks.push_back(value.get<std::string>());
}

Measurement summary(const std::string& contender, Collected collected) {
  Measurement one;
  one.contender = contender;
  one.declined = collected.declined;
  auto& times = collected.seconds;
  if (!one.declined.empty()) return one;
  if (times.empty()) {
    one.declined = "no time was measured";
    return one;
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1) + 0.5)];
  };
  one.median = at(0.5);
  one.low = at(0.25);
  one.high = at(0.75);
  one.samples = times.size();
  one.probe = std::move(collected.probe);
  one.memory = collected.memory;
  return one;
}

bool agrees(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = std::min(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(a[i]));
  for (std::size_t i = 0; i < count; ++i)
    if (!(std::abs(a[i] - b[i]) <= kTolerance * largest + 1e-6)) return false;
  return true;
}

void take_turn(Collected& into, const Contender& who, const Case& what, const Options& options) {
  if (!into.declined.empty()) return;
  // Threads of the one before may still spin in wait of work: libgomp's look
  // 300,000 times, which takes 18 ms where a look is 140 cycles.
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  take(into, who.peer->ask({{"case", json::parse(what.parameters)},
                            {"contender", who.contender},
                            {"seconds", options.seconds}}));
}

Row measure(const Case& what, const Field& field, const Options& options) {
  const auto limits = limit_cases();
  const Contender limiter{field.limits.get(), "", "limit"};
  const bool has_limit = what.bandwidth_goal > 0 && limiter.peer != nullptr;
  const auto& limit = what.reads_only ? limits.read : limits.triad;
  std::vector<Collected> collected(field.contenders.size());
  Collected of_limit;
  for (int round = 0; round < options.rounds; ++round) {
    if (has_limit) take_turn(of_limit, limiter, limit, options);
    for (std::size_t i = 0; i < field.contenders.size(); ++i)
      take_turn(collected[i], field.contenders[i], what, options);
  }
  Row row{what, {}, {}, 0};
  if (has_limit)
    if (const auto one = summary(limiter.name, std::move(of_limit)); one.declined.empty())
      row.memory_limit = limit.bytes / one.median;
  for (std::size_t i = 0; i < field.contenders.size(); ++i) {
    for (const auto& remark : collected[i].remarks)
      row.remarks.push_back(field.contenders[i].name + ": " + remark);
    auto one = summary(field.contenders[i].name, std::move(collected[i]));
    one.differs = one.declined.empty() && row.measurements.size() > 0 &&
                  row.measurements.front().declined.empty() &&
                  !agrees(row.measurements.front().probe, one.probe);
    row.measurements.push_back(std::move(one));
  }
  return row;
}

Limits limits_of(const Field& field, const Options& options) {
  Limits limits;
  if (field.limits == nullptr) return limits;
  const auto rate_of = [&](const Case& what, double amount) {
    Collected collected;
    for (int round = 0; round < options.rounds; ++round)
      take_turn(collected, {field.limits.get(), "", "limit"}, what, options);
    const auto one = summary("limit", std::move(collected));
    return one.declined.empty() ? amount / one.low : 0;
  };
  const auto [fma, triad, read] = limit_cases();
  limits.flops = rate_of(fma, fma.flops);
  limits.bytes = rate_of(triad, triad.bytes);
  limits.read_bytes = rate_of(read, read.bytes);
  return limits;
}

// A directory that is gone at the end.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    auto name = (std::filesystem::temp_directory_path() / "netcl-bench-XXXXXX").string();
    check<Error>(::mkdtemp(name.data()) != nullptr, "[bench] no directory could be made: {}", name);
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

double first_step(const Options& options, const std::filesystem::path& caches) {
  const json request = {{"case", {{"kind", "train"}, {"model", "cnn"}, {"batch", 64}}},
                        {"once", true}};
  const auto start = Clock::now();
  Peer peer({"XDG_CACHE_HOME=" + caches.string(), options.self, "bench", "--device", options.device,
             "--once", request.dump()});
  const auto answer = peer.ask(request);
  check<Error>(!answer.contains("declined"), "[bench] the first step failed: {}", answer.dump());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string host_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

// Each once, however many cases it held for.
void add_remarks(Report& report, const Row& row) {
  for (const auto& remark : row.remarks)
    if (std::find(report.notes.begin(), report.notes.end(), remark) == report.notes.end())
      report.notes.push_back(remark);
}

void measure_all(const std::vector<Case>& wanted, const Field& field, const Options& options,
                 Report& report) {
  if (options.progress) options.progress("limits", 0, wanted.size());
  report.limits = limits_of(field, options);
  for (const auto& one : wanted) {
    if (options.progress) options.progress(one.id, report.rows.size(), wanted.size());
    report.rows.push_back(measure(one, field, options));
    add_remarks(report, report.rows.back());
    if (options.finished) options.finished(report, report.rows.back());
  }
}

void measure_start(const Options& options, Report& report) try {
  const Scratch caches;
  report.first_step_cold = first_step(options, caches.path);
  report.first_step_warm = first_step(options, caches.path);
} catch (const Interrupted&) {
  throw;
} catch (const Error& error) {
  report.notes.emplace_back(error.what());
}

}  // namespace

Report run(const Options& options) {
  const auto wanted = cases(options);
  check<ArgumentError>(!wanted.empty(), "[bench] the filter must match a case: '{}' matches none",
                       options.filter);
  Report report;
  report.host = host_name();
  const auto field = start(options, report);
  // What an hour has measured is not lost with its last minute.
  try {
    measure_all(wanted, field, options, report);
    if (options.start_up) measure_start(options, report);
  } catch (const Interrupted&) {
    report.interrupted = true;
    report.notes.push_back(
        fmt::format("interrupted after {} of {} cases", report.rows.size(), wanted.size()));
  }
  return report;
}

}  // namespace netcl::bench
