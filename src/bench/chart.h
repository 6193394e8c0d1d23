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

// A ratio as a bar from 1: to the right where it is larger.
struct Bar {
  std::string name, color;
  double value = 1;
  double goal = 0;    // a mark at this ratio; 0: none
  std::string label;  // shown when the mouse rests on it
};

// One bar below the other. Bars that are not positive are left out. "" when nothing is left.
std::string svg_of(const std::string& title, std::vector<Bar> bars);

// Points that are not positive are left out. "" when nothing is left.
std::string svg_of(const Chart& chart);

}  // namespace netcl::bench
