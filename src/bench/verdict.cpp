// How the rows stand: against the peers, against the limits, against their neighbours.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "netcl/bench.h"

namespace netcl::bench {
namespace {

constexpr double kCliff = 0.8;

const Measurement* best_peer(const Row& row) {
  const Measurement* best = nullptr;
  for (const auto& one : row.measurements) {
    if (!one.declined.empty() || one.differs || one.contender.starts_with("netcl")) continue;
    if (!one.contender.starts_with(row.what.against)) continue;
    if (best == nullptr || one.median < best->median) best = &one;
  }
  return best;
}

// The id with its first number taken out, and that number: "conv2d 8x64x", 56.
struct Size {
  std::string rest;
  std::int64_t value = 0;
};

// All numbers of an id, each as the size that changes while the others stay.
std::vector<Size> sizes_of(const std::string& id) {
  std::vector<Size> all;
  for (std::size_t i = 0; i < id.size();) {
    if (std::isdigit(static_cast<unsigned char>(id[i])) == 0) {
      ++i;
      continue;
    }
    auto end = i;
    while (end < id.size() && std::isdigit(static_cast<unsigned char>(id[end])) != 0) ++end;
    const auto digits = id.substr(i, end - i);
    auto rest = id;
    // A square size appears more than once: 8x64x56x56, k64.
    for (auto at = rest.find(digits); at != std::string::npos; at = rest.find(digits, at + 1))
      rest.replace(at, digits.size(), "*");
    if (digits.size() < 10) all.push_back({rest, std::stoll(digits)});
    i = end;
  }
  return all;
}

bool are_neighbours(const std::string& a, const std::string& b) {
  for (const auto& x : sizes_of(a))
    for (const auto& y : sizes_of(b))
      if (x.rest == y.rest && std::abs(x.value - y.value) == 1 && x.value > 8) return true;
  return false;
}

double rate(const Row& row) {
  const auto& own = row.measurements.front();
  return own.declined.empty() && own.median > 0 ? row.what.flops / own.median : 0;
}

}  // namespace

Verdict verdict(const Row& row, const Limits& limits) {
  Verdict result;
  if (row.measurements.empty() || !row.measurements.front().declined.empty()) {
    result.has_goal = row.what.goal > 0 || row.what.bandwidth_goal > 0;
    return result;
  }
  result.own = &row.measurements.front();
  const double seconds = result.own->median;
  result.best_peer = best_peer(row);
  if (result.best_peer != nullptr) result.ratio = result.best_peer->median / seconds;
  double roof = row.memory_limit;
  if (roof == 0) roof = row.what.reads_only ? limits.read_bytes : limits.bytes;
  if (roof > 0) result.of_bandwidth = row.what.bytes / seconds / roof;
  const double of_flops = limits.flops > 0 ? row.what.flops / seconds / limits.flops : 0;
  result.of_limit = std::max(of_flops, result.of_bandwidth);
  const bool fast =
      row.what.goal == 0 || (result.best_peer != nullptr && result.ratio >= row.what.goal);
  const bool wide = row.what.bandwidth_goal == 0 || result.of_bandwidth >= row.what.bandwidth_goal;
  result.has_goal =
      (row.what.goal > 0 && result.best_peer != nullptr) || row.what.bandwidth_goal > 0;
  result.met = fast && wide;
  return result;
}

std::vector<Standing> standings(const Report& report) {
  std::vector<std::pair<std::string, std::vector<double>>> ratios;  // in the order of contenders
  for (const auto& row : report.rows) {
    const auto own = verdict(row, report.limits).own;
    if (own == nullptr) continue;
    for (const auto& one : row.measurements) {
      if (&one == own || !one.declined.empty() || one.differs) continue;
      auto found = std::find_if(ratios.begin(), ratios.end(),
                                [&](const auto& entry) { return entry.first == one.contender; });
      if (found == ratios.end()) found = ratios.insert(ratios.end(), {one.contender, {}});
      found->second.push_back(one.median / own->median);
    }
  }
  std::vector<Standing> all;
  for (auto& [contender, times] : ratios) {
    std::sort(times.begin(), times.end());
    all.push_back({contender, times.size(), times.front(), times[times.size() / 2], times.back()});
  }
  return all;
}

std::vector<std::string> cliffs(const Report& report) {
  std::vector<std::string> found;
  for (const auto& low : report.rows)
    for (const auto& high : report.rows) {
      if (low.what.group != high.what.group || !low.what.group.starts_with("sweep")) continue;
      const double a = rate(low), b = rate(high);
      if (a <= 0 || b <= 0 || a >= kCliff * b || !are_neighbours(low.what.id, high.what.id))
        continue;
      found.push_back(fmt::format("{} runs at {:.0f} % of the rate of {}", low.what.id, 100 * a / b,
                                  high.what.id));
    }
  return found;
}

}  // namespace netcl::bench
