// Pieces of the report's page.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netcl::train {

std::string base64(std::span<const std::byte> bytes);

// Values that are not finite are left out.
struct Plot {
  std::string title;
  std::vector<std::pair<double, double>> train, test;
};
std::string svg_of(const Plot& plot);

}  // namespace netcl::train
