#include "bench/chart.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace netcl::bench {
namespace {

constexpr double kLeft = 58, kRight = 14, kTop = 26, kBottom = 40;

struct Range {
  double low = INFINITY, high = 0;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    low /= 1.25;
    high *= 1.25;
  }
};

bool drawn(const std::pair<double, double>& point) {
  return point.first > 0 && point.second > 0 && std::isfinite(point.first + point.second);
}

// 1, 10, 100 ... and, where these are few, 2 and 5 times them.
std::vector<double> marks(const Range& range) {
  std::vector<double> all;
  const bool few = range.high / range.low < 1000;
  for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high;
       power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if ((few || factor == 1) && power * factor >= range.low && power * factor <= range.high)
        all.push_back(power * factor);
  return all;
}

class Canvas {
 public:
  Canvas(const Chart& chart, const Range& x, const Range& y) : chart_(chart), x_(x), y_(y) {}
  double x(double value) const {
    return kLeft +
           (chart_.width - kLeft - kRight) * std::log(value / x_.low) / std::log(x_.high / x_.low);
  }
  double y(double value) const {
    return chart_.height - kBottom -
           (chart_.height - kTop - kBottom) * std::log(value / y_.low) / std::log(y_.high / y_.low);
  }
  std::string axes() const {
    std::string svg;
    for (const double mark : marks(x_))
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"var(--line)\"/><text "
          "x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>",
          x(mark), kTop, chart_.height - kBottom, chart_.height - kBottom + 14, mark);
    for (const double mark : marks(y_))
      svg += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"var(--line)\"/><text "
          "x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>",
          kLeft, chart_.width - kRight, y(mark), kLeft - 6, y(mark) + 4, mark);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                       chart_.width - kRight, chart_.height - 6, html_text(chart_.x_name));
    return svg + fmt::format("<text x=\"{}\" y=\"14\">{}: {}</text>", kLeft - 40,
                             html_text(chart_.title), html_text(chart_.y_name));
  }
  std::string series(const Series& one) const {
    std::string svg, places;
    for (const auto& point : one.points)
      if (drawn(point)) places += fmt::format("{:.1f},{:.1f} ", x(point.first), y(point.second));
    if (one.line)
      svg += fmt::format(
          "<polyline fill=\"none\" stroke=\"var(--{})\" stroke-width=\"1.5\" points=\"{}\"/>",
          one.color, places);
    for (std::size_t i = 0; one.dots && i < one.points.size(); ++i) {
      if (!drawn(one.points[i])) continue;
      const auto label = i < one.labels.size() ? one.labels[i] : one.name;
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"var(--{})\" fill-opacity=\"0.8\">"
          "<title>{}</title></circle>",
          x(one.points[i].first), y(one.points[i].second), one.color, html_text(label));
    }
    return svg;
  }

 private:
  const Chart& chart_;
  Range x_, y_;
};

constexpr double kBarWidth = 760, kBarHeight = 16, kNames = 310, kValues = 44, kBarTop = 20;

// Where ratios lie beside the names.
class BarCanvas {
 public:
  BarCanvas(const Range& range, std::size_t count)
      : range_(range), bottom_(kBarTop + kBarHeight * static_cast<double>(count)) {}
  double height() const { return bottom_ + 4; }
  double x(double ratio) const {
    return kNames + (kBarWidth - kNames - kValues) * std::log(ratio / range_.low) /
                        std::log(range_.high / range_.low);
  }
  std::string axis() const {
    std::string svg;
    for (const double mark : marks(range_))
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"var(--{3})\"/><text "
          "x=\"{0:.1f}\" y=\"12\" text-anchor=\"middle\">{4:g}</text>",
          x(mark), kBarTop - 4, bottom_, mark == 1 ? "soft" : "line", mark);
    return svg;
  }
  std::string bar(const Bar& one, std::size_t row) const {
    const double top = kBarTop + kBarHeight * static_cast<double>(row);
    const double from = std::min(x(1), x(one.value)), to = std::max(x(1), x(one.value));
    auto svg = fmt::format(
        "<g><title>{}</title><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text><rect "
        "x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"var(--{})\"/><text "
        "x=\"{:.1f}\" y=\"{:.1f}\">{:.2f}</text>",
        html_text(one.label), kNames - 8, top + 11, html_text(one.name), from, top + 2, to - from,
        kBarHeight - 4, one.color, to + 4, top + 11, one.value);
    if (one.goal > 0 && one.goal != 1)
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
          "stroke=\"currentColor\" stroke-width=\"2\"/>",
          x(one.goal), top, top + kBarHeight);
    return svg + "</g>";
  }

 private:
  Range range_;
  double bottom_;
};

}  // namespace

std::string svg_of(const std::string& title, std::vector<Bar> bars) {
  std::erase_if(bars, [](const Bar& one) { return !(one.value > 0 && std::isfinite(one.value)); });
  if (bars.empty()) return "";
  Range range;
  range.take(1);
  for (const auto& one : bars) {
    range.take(one.value);
    if (one.goal > 0) range.take(one.goal);
  }
  range.widen();
  const BarCanvas canvas(range, bars.size());
  auto svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kBarWidth,
                         canvas.height(), html_text(title));
  svg += canvas.axis();
  for (std::size_t row = 0; row < bars.size(); ++row) svg += canvas.bar(bars[row], row);
  return svg + "</svg>\n";
}

std::string svg_of(const Chart& chart) {
  Range x, y;
  for (const auto& one : chart.series)
    for (const auto& point : one.points)
      if (drawn(point)) {
        x.take(point.first);
        y.take(point.second);
      }
  if (x.high == 0) return "";
  x.widen();
  y.widen();
  const Canvas canvas(chart, x, y);
  auto svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", chart.width,
                         chart.height, html_text(chart.title));
  svg += canvas.axes();
  for (const auto& one : chart.series) svg += canvas.series(one);
  return svg + "</svg>\n";
}

}  // namespace netcl::bench
