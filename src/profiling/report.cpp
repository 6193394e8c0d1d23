// What was recorded, as a table and as a trace.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "profiling/recorder.h"

namespace netcl {
namespace {

using profiling::Span;

struct Totals {
  KernelSummary summary;
  double flops = 0, bytes = 0;
  std::uint64_t timed = 0;
};

void add(Totals& totals, const Span& span) {
  auto& summary = totals.summary;
  ++summary.count;
  if (!span.timed) return;
  const double microseconds = static_cast<double>(span.duration_ns) / 1e3;
  summary.min_us = totals.timed == 0 ? microseconds : std::min(summary.min_us, microseconds);
  summary.max_us = std::max(summary.max_us, microseconds);
  summary.total_ms += microseconds / 1e3;
  totals.flops += span.cost.flops;
  totals.bytes += span.cost.bytes;
  ++totals.timed;
}

KernelSummary finished(const Totals& totals) {
  auto summary = totals.summary;
  if (totals.timed == 0 || summary.total_ms == 0) return summary;
  const double seconds = summary.total_ms / 1e3;
  summary.mean_us = summary.total_ms * 1e3 / static_cast<double>(totals.timed);
  summary.gflops = totals.flops / seconds / 1e9;
  summary.gbytes_per_s = totals.bytes / seconds / 1e9;
  return summary;
}

template <class Summary>
void sort_by_time(std::vector<Summary>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.total_ms > b.total_ms; });
}

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

nlohmann::json trace_event(const Span& span, std::size_t track) {
  nlohmann::json event = {{"name", span.name},
                          {"cat", span.category},
                          {"ph", "X"},
                          {"ts", static_cast<double>(span.start_ns) / 1e3},
                          {"dur", static_cast<double>(span.duration_ns) / 1e3},
                          {"pid", 1},
                          {"tid", track}};
  if (span.cost.flops > 0) event["args"]["flops"] = span.cost.flops;
  if (span.cost.bytes > 0) event["args"]["bytes"] = span.cost.bytes;
  return event;
}

}  // namespace

std::vector<KernelSummary> kernel_summary() {
  std::map<std::pair<const char*, const char*>, Totals> kernels;
  for (const auto& span : profiling::spans()) {
    if (std::string_view(span.category) != "kernel") continue;
    auto& totals = kernels[{span.name, span.track}];
    totals.summary.name = span.name;
    totals.summary.device = span.track;
    add(totals, span);
  }
  std::vector<KernelSummary> rows;
  for (const auto& [key, totals] : kernels) rows.push_back(finished(totals));
  sort_by_time(rows);
  return rows;
}

std::vector<RegionSummary> region_summary() {
  std::map<std::string, RegionSummary> regions;
  for (const auto& span : profiling::spans()) {
    if (std::string_view(span.category) != "region") continue;
    auto& region = regions[span.name];
    region.name = span.name;
    ++region.count;
    region.total_ms += static_cast<double>(span.duration_ns) / 1e6;
  }
  std::vector<RegionSummary> rows;
  for (const auto& [name, region] : regions) rows.push_back(region);
  sort_by_time(rows);
  return rows;
}

std::string profile_report() {
  std::string text = fmt::format("{:<32} {:>8} {:>12} {:>12} {:>10} {:>10}\n", "kernel", "count",
                                 "total ms", "mean us", "GFLOP/s", "GB/s");
  for (const auto& row : kernel_summary())
    text += fmt::format("{:<32} {:>8} {:>12.3f} {:>12.2f} {:>10} {:>10.2f}\n", cut(row.name, 32),
                        row.count, row.total_ms, row.mean_us,
                        row.gflops > 0 ? fmt::format("{:.2f}", row.gflops) : std::string("-"),
                        row.gbytes_per_s);
  const auto regions = region_summary();
  if (regions.empty()) return text;
  text += fmt::format("{:<32} {:>8} {:>12}\n", "region", "count", "total ms");
  for (const auto& row : regions)
    text += fmt::format("{:<32} {:>8} {:>12.3f}\n", cut(row.name, 32), row.count, row.total_ms);
  return text;
}

void write_chrome_trace(const std::string& path) {
  const auto spans = profiling::spans();
  std::map<std::string, std::size_t> tracks;
  for (const auto& span : spans) tracks.emplace(span.track, tracks.size() + 1);
  auto events = nlohmann::json::array();
  for (const auto& [name, id] : tracks)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", id},
                      {"args", {{"name", name}}}});
  for (const auto& span : spans)
    if (span.timed) events.push_back(trace_event(span, tracks.at(span.track)));
  const nlohmann::json trace = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  const auto text = trace.dump();
  write_file_atomic(path, std::as_bytes(std::span(text)), 0644, Durable::no);
}

}  // namespace netcl
