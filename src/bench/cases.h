// The limits of a device are cases like the others; run() asks for them first.
#pragma once

#include <cstdint>

#include "netcl/bench.h"

namespace netcl::bench {

inline constexpr std::int64_t kLimitElements = std::int64_t{1} << 24;
// Work-items, rounds, and 12 vectors of 16 that are multiplied and added to in each.
inline constexpr std::int64_t kLimitItems = 256, kLimitRounds = 1 << 14, kLimitVectors = 12;
inline constexpr double kLimitFlops = 2.0 * kLimitItems * kLimitRounds * kLimitVectors * 16;

struct LimitCases {
  Case fma, triad, read;
};
LimitCases limit_cases();

}  // namespace netcl::bench
