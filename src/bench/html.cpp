// The report as a page: every goal beside the fastest peer, the roofline, how costs grow, and the
// table.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/page.h"
#include "bench/chart.h"
#include "bench/text.h"

namespace netcl::bench {
namespace {

constexpr std::string_view kStyle =
    ":root{--met:rgb(var(--good));--missed:rgb(var(--bad))}.met{color:var(--met)}.missed{color:var("
    "--missed)}table{font-size:.85rem}td{white-space:nowrap}pre{white-space:pre-wrap;font-size:."
    "85rem}\n";

std::string key(const std::vector<Series>& series) {
  std::string text = "<p class=\"key soft\">";
  for (const auto& one : series)
    if (!one.name.empty())
      text += fmt::format("<span style=\"background:var(--{})\"></span>{}", one.color,
                          html_text(one.name));
  return text + "</p>\n";
}

bool is_sweep(const Row& row) { return row.what.group.starts_with("sweep"); }

std::string label_of(const Row& row, const Measurement& one) {
  return fmt::format("{}: {}, {}, {}", row.what.id, one.contender, time_text(one.median),
                     rate_text(row.what, one.median));
}

// How many times as fast as the fastest peer, work by work.
std::string ratios(const Report& report) {
  std::vector<Bar> bars;
  for (const auto& row : report.rows) {
    const auto v = verdict(row, report.limits);
    if (!v.has_goal || v.own == nullptr || v.best_peer == nullptr) continue;
    bars.push_back({row.what.id, v.met ? "met" : "missed", v.ratio, row.what.goal,
                    fmt::format("{}; {}", label_of(row, *v.own), label_of(row, *v.best_peer))});
  }
  const auto svg = svg_of("beside the fastest peer", std::move(bars));
  if (svg.empty()) return "";
  return "<h2>Beside the fastest peer</h2>" +
         key({{"goal met", "met", {}, {}, false, false},
              {"goal not met", "missed", {}, {}, false, false}}) +
         svg +
         "<p class=\"soft\">How many times as fast netcl on the device is; the mark is the goal "
         "where "
         "it is not 1. Where memory decides, a share of its bandwidth is a goal, too.</p>\n";
}

std::string roofline(const Report& report) {
  const auto& limits = report.limits;
  if (limits.flops <= 0 || limits.bytes <= 0) return "";
  Series roof{"limit of the device", "soft", {}, {}, true, false};
  Series own{"netcl opencl", "first", {}, {}, false, true};
  Series peers{"the fastest peer", "second", {}, {}, false, true};
  double least = 1e9, most = 0;
  for (const auto& row : report.rows) {
    if (is_sweep(row) || row.what.bytes <= 0 || row.what.flops <= 0) continue;
    const auto v = verdict(row, limits);
    if (v.own == nullptr) continue;
    const double intensity = row.what.flops / row.what.bytes;
    least = std::min(least, intensity);
    most = std::max(most, intensity);
    const auto put = [&](Series& series, const Measurement& one) {
      series.points.emplace_back(intensity, row.what.flops / one.median * 1e-9);
      series.labels.push_back(label_of(row, one));
    };
    put(own, *v.own);
    if (v.best_peer != nullptr) put(peers, *v.best_peer);
  }
  const double knee = limits.flops / limits.bytes;
  least = std::min(least, knee) / 2;
  most = std::max(most, knee) * 2;
  roof.points = {{least, least * limits.bytes * 1e-9},
                 {knee, limits.flops * 1e-9},
                 {most, limits.flops * 1e-9}};
  Chart chart{"roofline", "operations per byte of inputs and result",
              "GFLOP/s",  {roof, peers, own},
              760,        420};
  return "<h2>Roofline</h2>" + key(chart.series) + svg_of(chart) +
         "<p class=\"soft\">A convolution by Winograd's method does fewer operations than are "
         "counted here, so its dot may be above the line.</p>\n";
}

// The parameter that a sweep changes.
double size_of(const Row& row, const char* name) {
  return nlohmann::json::parse(row.what.parameters).value(name, 0.0);
}

struct Sweep {
  const char *group, *prefix, *size, *title, *x_name;
  enum class Shown { rate, per_call, memory } shown;
};

std::string sweep_chart(const Report& report, const Sweep& sweep) {
  Series own{"netcl opencl", "first", {}, {}, true, true};
  Series peers{"the fastest peer", "second", {}, {}, true, true};
  for (const auto& row : report.rows) {
    if (row.what.group != sweep.group || !row.what.id.starts_with(sweep.prefix)) continue;
    const auto v = verdict(row, report.limits);
    if (v.own == nullptr) continue;
    const double x = size_of(row, sweep.size);
    const auto y = [&](const Measurement& one) {
      if (sweep.shown == Sweep::Shown::rate) return row.what.flops / one.median * 1e-9;
      if (sweep.shown == Sweep::Shown::memory) return one.memory / (1 << 20);
      return one.median / x * 1e6;
    };
    own.points.emplace_back(x, y(*v.own));
    own.labels.push_back(label_of(row, *v.own));
    if (v.best_peer == nullptr) continue;
    peers.points.emplace_back(x, y(*v.best_peer));
    peers.labels.push_back(label_of(row, *v.best_peer));
  }
  const char* y_name = sweep.shown == Sweep::Shown::rate     ? "GFLOP/s"
                       : sweep.shown == Sweep::Shown::memory ? "MB"
                                                             : "us per op";
  return svg_of({sweep.title, sweep.x_name, y_name, {peers, own}});
}

std::string sweeps(const Report& report) {
  using Shown = Sweep::Shown;
  const Sweep all[] = {
      {"sweep: matmul", "matmul", "n", "matmul, square", "rows", Shown::rate},
      {"sweep: conv2d sizes", "conv2d", "size", "conv2d 8x64 k64 3x3", "height and width",
       Shown::rate},
      {"sweep: conv2d channels", "conv2d", "c", "conv2d 3x3 on 28x28", "channels", Shown::rate},
      {"sweep: launches", "launches", "count", "small ops in a row", "ops", Shown::per_call},
      {"sweep: networks", "train cnn", "batch", "training step of the cnn", "batch", Shown::rate},
      {"sweep: networks", "train cnn", "batch", "memory of that step", "batch", Shown::memory},
  };
  std::string text;
  for (const auto& sweep : all) text += sweep_chart(report, sweep);
  if (text.empty()) return "";
  return "<h2>How the cost grows</h2>" +
         key({{"netcl opencl", "first", {}, {}, true, true},
              {"the fastest peer", "second", {}, {}, true, true}}) +
         "<div class=\"plots\">" + text + "</div>\n";
}

std::string rows_of(const Report& report) {
  std::string text =
      "<h2>All figures</h2><div class=\"wide\"><table><tr><th>work</th><th>contender</th><th "
      "class=\"n\">time</th><th class=\"n\">quartiles</th><th class=\"n\">rate</th><th "
      "class=\"n\">netcl is faster by</th><th>goal</th></tr>\n";
  for (const auto& row : report.rows) {
    const auto v = verdict(row, report.limits);
    for (const auto& one : row.measurements) {
      const bool own = &one == v.own;
      const auto goal = own ? goal_text(row, v) : "";
      if (!one.declined.empty()) continue;
      text += fmt::format(
          "<tr><td>{}</td><td>{}{}</td><td class=\"n\">{}</td><td class=\"n\">{} - {}</td><td "
          "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"{}\">{}</td></tr>\n",
          own ? html_text(row.what.id) : "", html_text(one.contender),
          one.differs ? " (DIFFERS)" : "", time_text(one.median), time_text(one.low),
          time_text(one.high), rate_text(row.what, one.median),
          !own && v.own != nullptr ? fmt::format("{:.2f}", one.median / v.own->median) : "",
          v.met ? "met" : "missed", html_text(goal));
    }
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string html(const Report& report) {
  return html_page("netcl benchmark", kStyle,
                   "<h1>netcl benchmark</h1>\n<pre>" + html_text(summary_text(report)) +
                       "</pre>\n" + ratios(report) + roofline(report) + sweeps(report) +
                       rows_of(report));
}

}  // namespace netcl::bench
