// How figures are written, in the table and on the page alike.
#pragma once

#include <string>

#include "netcl/bench.h"

namespace netcl::bench {

std::string time_text(double seconds);                    // "1.23 ms"
std::string rate_text(const Case& what, double seconds);  // "123 GFLOP/s"
std::string goal_text(const Row& row, const Verdict& v);  // "met (0.95)"
std::string summary_text(const Report& report);           // machine, limits, goals, cliffs

}  // namespace netcl::bench
