// Pictures with logarithmic axes, as inline SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace netcl::bench {

struct Series {
  std::string name;
  std::string color;  // a variable of html_page: "first"
  std::vector<std::pair<double, double>> points;
  std::vector<std::string> labels;  // per point, shown when the mouse rests on it; may be empty
  bool line = true, dots = true;
};

struct Chart {
  std::string title, x_name, y_name;
  std::vector<Series> series;
  double width = 480, height = 300;
};

// Points that are not positive are left out. "" when nothing is left.
std::string svg_of(const Chart& chart);

}  // namespace netcl::bench
