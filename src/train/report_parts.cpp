#include "train/report_parts.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace netcl::train {
namespace {

constexpr double kWidth = 480, kHeight = 260, kLeft = 46, kRight = 10, kTop = 24, kBottom = 26;

struct Range {
  double low = 0, high = 1;
};

// The distance of grid lines: 1, 2 or 5 times a power of ten, about four of them.
double grid_step(const Range& range) {
  const double rough = (range.high - range.low) / 4;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

Range range_of(const Plot& plot) {
  Range range{INFINITY, -INFINITY};
  for (const auto* line : {&plot.train, &plot.test})
    for (const auto& [x, y] : *line) {
      if (!std::isfinite(y)) continue;
      range.low = std::min(range.low, y);
      range.high = std::max(range.high, y);
    }
  if (!(range.low <= range.high)) return {0, 1};
  if (range.high - range.low < 1e-9) return {range.low - 0.5, range.high + 0.5};
  return range;
}

class Canvas {
 public:
  Canvas(double last_x, Range y) : last_x_(std::max(last_x, 1.0)), y_(y) {}
  double x(double value) const { return kLeft + (kWidth - kLeft - kRight) * value / last_x_; }
  double y(double value) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (value - y_.low) / (y_.high - y_.low);
  }
  std::string line(const std::vector<std::pair<double, double>>& points, const char* color) const {
    std::string places;
    for (const auto& [px, py] : points)
      if (std::isfinite(py)) places += fmt::format("{:.1f},{:.1f} ", x(px), y(py));
    return fmt::format(
        "<polyline fill=\"none\" stroke=\"var(--{})\" stroke-width=\"2\" points=\"{}\"/>", color,
        places);
  }

 private:
  double last_x_;
  Range y_;
};

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto left = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < left ? std::to_integer<unsigned>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= left ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string svg_of(const Plot& plot) {
  double last = 1;
  for (const auto* line : {&plot.train, &plot.test})
    for (const auto& [x, y] : *line) last = std::max(last, x);
  const auto range = range_of(plot);
  const Canvas canvas(last, range);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\"><text x=\"{}\" y=\"14\">{}</text>",
                  kWidth, kHeight, kLeft, html_text(plot.title));
  const double step = grid_step(range);
  for (double value = std::ceil(range.low / step) * step; value <= range.high + step * 1e-9;
       value += step)
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"var(--line)\"/><text "
        "x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>",
        kLeft, kWidth - kRight, canvas.y(value), canvas.y(value), kLeft - 6, canvas.y(value) + 4,
        std::abs(value) < step / 2 ? 0.0 : value);
  svg += fmt::format("<text x=\"{}\" y=\"{}\">step 0</text>", kLeft, kHeight - 6);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f}</text>", kWidth - kRight,
                     kHeight - 6, last);
  svg += canvas.line(plot.train, "first") + canvas.line(plot.test, "second");
  for (const auto& [x, y] : plot.test)
    if (std::isfinite(y))
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"var(--second)\"/>",
                         canvas.x(x), canvas.y(y));
  return svg + "</svg>\n";
}

}  // namespace netcl::train
