// The report as text: a Markdown table that also reads well in a terminal, and lines of JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/text.h"

namespace netcl::bench {
namespace {

using Cells = std::vector<std::string>;

std::string spread(const Measurement& one) {
  return fmt::format("{} ±{:.0f} %", time_text(one.median),
                     one.median > 0 ? 50 * (one.high - one.low) / one.median : 0);
}

const Measurement* cpu_backend(const Row& row) {
  for (std::size_t i = 1; i < row.measurements.size(); ++i)
    if (row.measurements[i].contender == "netcl cpu" && row.measurements[i].declined.empty())
      return &row.measurements[i];
  return nullptr;
}

Cells cells_of(const Row& row, const Limits& limits) {
  const auto v = verdict(row, limits);
  if (v.own == nullptr)
    return {row.what.id, row.measurements.empty() ? "-" : row.measurements.front().declined,
            "",          "",
            "",          "",
            "",          "",
            ""};
  const auto* cpu = cpu_backend(row);
  return {row.what.id,
          spread(*v.own),
          rate_text(row.what, v.own->median),
          v.of_limit > 0 ? fmt::format("{:.0f} %", 100 * v.of_limit) : "",
          cpu != nullptr ? time_text(cpu->median) : "",
          v.best_peer != nullptr ? v.best_peer->contender : "",
          v.best_peer != nullptr ? time_text(v.best_peer->median) : "",
          v.best_peer != nullptr ? fmt::format("{:.2f}", v.ratio) : "",
          goal_text(row, v)};
}

std::string lines_of(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  const auto width_of = [](const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
  };
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max({widths[i], width_of(row[i]), std::size_t{3}});
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const auto padding = std::string(widths[i] - width_of(rows[r][i]), ' ');
      const bool left = i == 0 || i == 5 || i == 8;
      text += "| " + (left ? rows[r][i] + padding : padding + rows[r][i]) + " ";
    }
    text += "|\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool left = i == 0 || i == 5 || i == 8;
      text += "|" + std::string(widths[i] + 1, '-') + (left ? "-" : ":");
    }
    text += "|\n";
  }
  return text;
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds >= 1e-2 ? 1 : 2);
  return fmt::format("{:.{}f} us", seconds * 1e6, seconds >= 1e-5 ? 0 : 1);
}

std::string rate_text(const Case& what, double seconds) {
  if (what.flops > 0) return fmt::format("{:.0f} GFLOP/s", what.flops / seconds * 1e-9);
  if (what.bytes > 0) return fmt::format("{:.1f} GB/s", what.bytes / seconds * 1e-9);
  return "";
}

std::string goal_text(const Row& row, const Verdict& v) {
  if (!v.has_goal) return "";
  std::string text = v.met ? "met" : "not met";
  if (row.what.goal > 0 && v.best_peer != nullptr) text += fmt::format(" ({:.2g}", row.what.goal);
  if (row.what.bandwidth_goal > 0)
    text += fmt::format("{}{:.0f} % of bandwidth, is {:.0f} %",
                        row.what.goal > 0 && v.best_peer != nullptr ? "; " : " (",
                        100 * row.what.bandwidth_goal, 100 * v.of_bandwidth);
  return text + ")";
}

std::string summary_text(const Report& report) {
  std::string text =
      fmt::format("{}, {} threads; {}\n", report.host, report.threads, report.device);
  if (report.limits.flops > 0)
    text += fmt::format(
        "limits: {:.0f} GFLOP/s multiply-add, {:.1f} GB/s triad, {:.1f} GB/s read\n",
        report.limits.flops * 1e-9, report.limits.bytes * 1e-9, report.limits.read_bytes * 1e-9);
  if (report.first_step_cold > 0)
    text += fmt::format(
        "start of a process to the first training step: {:.2f} s without caches "
        "({}: 10 s), {:.2f} s with them ({}: 1.5 s)\n",
        report.first_step_cold, report.first_step_cold < 10 ? "met" : "not met",
        report.first_step_warm, report.first_step_warm < 1.5 ? "met" : "not met");
  std::size_t goals = 0, met = 0;
  for (const auto& row : report.rows) {
    const auto v = verdict(row, report.limits);
    goals += v.has_goal ? 1 : 0;
    met += v.has_goal && v.met ? 1 : 0;
    for (const auto& one : row.measurements)
      if (one.differs)
        text +=
            fmt::format("DIFFERS: {} of {} is not netcl's result\n", row.what.id, one.contender);
  }
  text += fmt::format("goals: {} of {} met\n", met, goals);
  for (const auto& one : standings(report))
    text += fmt::format("beside {}: {:.2g} to {:.2g} times as fast, median {:.2g} ({} rows)\n",
                        one.contender, one.least, one.most, one.median, one.rows);
  for (const auto& one : cliffs(report)) text += "cliff: " + one + "\n";
  for (const auto& note : report.notes) text += "note: " + note + "\n";
  return text;
}

std::string table(const Report& report) {
  std::vector<Cells> rows = {{"work", "netcl opencl", "rate", "of limit", "netcl cpu", "best peer",
                              "its time", "ratio", "goal"}};
  for (const auto& row : report.rows) rows.push_back(cells_of(row, report.limits));
  return lines_of(rows) + "\n" + summary_text(report);
}

std::string json_line(const Row& row) {
  std::string text;
  for (const auto& one : row.measurements) {
    nlohmann::json line = {{"case", row.what.id},
                           {"group", row.what.group},
                           {"parameters", nlohmann::json::parse(row.what.parameters)},
                           {"contender", one.contender}};
    if (!one.declined.empty()) {
      line["declined"] = one.declined;
    } else {
      line.update({{"seconds", one.median},
                   {"low", one.low},
                   {"high", one.high},
                   {"samples", one.samples},
                   {"differs", one.differs}});
      if (row.what.flops > 0) line["gflops"] = row.what.flops / one.median * 1e-9;
      if (row.what.bytes > 0) line["gbytes_per_s"] = row.what.bytes / one.median * 1e-9;
      if (one.memory > 0) line["memory"] = one.memory;
      if (row.memory_limit > 0) line["memory_limit"] = row.memory_limit * 1e-9;
    }
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace netcl::bench
