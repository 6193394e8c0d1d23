// How much a deflated stream can hold: what claims to hold more is refused before memory is spent.
#pragma once

#include <cstdint>

namespace netcl::io_detail {

// Deflate's best code writes 258 bytes with two bits; the rest covers what streams have around it.
inline std::uint64_t most_inflated(std::uint64_t deflated) {
  constexpr std::uint64_t kRatio = 1032;
  return deflated > UINT64_MAX / kRatio ? UINT64_MAX : deflated * kRatio;
}

}  // namespace netcl::io_detail
