// Winograd's tiles of 4x4 results and the 6x6 inputs that they see (winograd_tiles.cl): what the
// hosts of the convolution and of its gradient with respect to w share.
#pragma once

#include "base/format.h"
#include "ops/conv2d/launch.h"

namespace netcl::conv {

inline constexpr std::int64_t kTile = 4, kPatch = 6, kPlaces = kPatch * kPatch;

struct alignas(32) TileCounts {
  std::int64_t all, down, across, argument;  // the last as the kernel wants it
};

inline TileCounts tiles_of(const ConvSizes& s) {
  const auto down = static_cast<std::int64_t>(ceil_div(s.P, kTile));
  const auto across = static_cast<std::int64_t>(ceil_div(s.Q, kTile));
  return {s.N * down * across, down, across, s.K};
}

// The same place of 36 matrices is written at once. Between two of them there is an odd number of
// vectors: lines whose distance is a large power of two would drive each other out of the cache.
inline std::int64_t odd(std::int64_t count) { return count | 1; }

// Elements of a row of `tiles` tiles: whole vectors, and one more that the transform may write; an
// odd number of them.
inline std::int64_t tile_pitch(std::int64_t tiles, std::int64_t vec) {
  return odd(static_cast<std::int64_t>(ceil_div(tiles, vec)) + 1) * vec;
}

inline std::string not_winograd(const ConvSizes& s) {
  if (s.R != 3 || s.S != 3) return fmt::format("the filter is {}x{}, not 3x3", s.R, s.S);
  if (s.is_strided()) return fmt::format("stride ({}, {}), not 1", s.stride_h, s.stride_w);
  if (s.is_dilated()) return "the filter is dilated";
  if (s.groups != 1) return fmt::format("{} groups", s.groups);
  return nothing_to_sum(s);
}

}  // namespace netcl::conv
