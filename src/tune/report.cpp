// The tuning report as one HTML page: no scripts, no other files, pictures as inline SVG.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/page.h"
#include "netcl/tunables.h"

namespace netcl {
namespace {

using Candidate = TuningRecord::Candidate;

constexpr std::string_view kStyle =
    R"(table{width:100%}.bar{fill:var(--other)}.best{fill:var(--third)}.default{fill:var(--second)}
)";

std::string text_of(const Parameters& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

double speed_up(const TuningRecord& record) {
  return record.runtime_us > 0 ? record.default_us / record.runtime_us : 1;
}

const char* bar_class(const Candidate& candidate, const TuningRecord& record) {
  if (candidate.parameters == record.parameters) return "best";
  return &candidate == &record.candidates.front() ? "default" : "bar";
}

// Horizontal bars, the fastest first; what could not be used follows with the reason.
std::string picture(const TuningRecord& record) {
  std::vector<const Candidate*> order;
  double longest = 0;
  for (const auto& candidate : record.candidates) {
    order.push_back(&candidate);
    if (std::isfinite(candidate.runtime_us)) longest = std::max(longest, candidate.runtime_us);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->runtime_us < b->runtime_us; });
  constexpr int kRow = 20, kLabel = 190, kWidth = 560;
  std::string svg = fmt::format("<svg width=\"100%\" viewBox=\"0 0 900 {}\" role=\"img\">\n",
                                order.size() * kRow + 4);
  int y = 2;
  for (const auto* candidate : order) {
    svg += fmt::format("<text x=\"0\" y=\"{}\">{}</text>", y + 14,
                       html_text(text_of(candidate->parameters)));
    if (std::isfinite(candidate->runtime_us) && longest > 0) {
      const double width = std::max(1.0, candidate->runtime_us / longest * kWidth);
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>"
          "<text x=\"{:.1f}\" y=\"{}\">{:.2f} us</text>\n",
          bar_class(*candidate, record), kLabel, y + 2, width, kRow - 5, kLabel + width + 6, y + 14,
          candidate->runtime_us);
    } else {
      svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLabel, y + 14,
                         html_text(std::string_view(candidate->note).substr(0, 100)));
    }
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string summary_row(const TunedProblem& problem) {
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td class=\"n\">{:.2f}</td><td class=\"n\">{:.2f}</td>"
      "<td class=\"n\">{:.2f}</td><td>{}</td></tr>\n",
      html_text(problem.op), html_text(problem.label), problem.record.default_us,
      problem.record.runtime_us, speed_up(problem.record),
      html_text(text_of(problem.record.parameters)));
}

}  // namespace

std::string tuning_report_html(const std::string& device,
                               const std::vector<TunedProblem>& problems) {
  std::string page = fmt::format("<h1>netcl tuning report</h1>\n<p>{}: {} problems.</p>\n",
                                 html_text(device), problems.size());
  page +=
      "<table><tr><th>op</th><th>problem</th><th class=\"n\">default us</th><th class=\"n\">best "
      "us</th><th class=\"n\">times faster</th><th>best parameters</th></tr>\n";
  for (const auto& problem : problems) page += summary_row(problem);
  page +=
      "</table>\n<p class=\"key\"><span style=\"background:var(--third)\"></span>best"
      "<span style=\"background:var(--second)\"></span>default"
      "<span style=\"background:var(--other)\"></span>other; time of one run, shorter is "
      "better</p>\n";
  for (const auto& problem : problems)
    page +=
        fmt::format("<h2>{}: {} ({:.2f} times faster)</h2>\n{}", html_text(problem.op),
                    html_text(problem.label), speed_up(problem.record), picture(problem.record));
  return html_page("netcl tuning report", kStyle, page);
}

}  // namespace netcl
