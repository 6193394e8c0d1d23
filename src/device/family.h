// What is known about whole families of devices, as one table, and how a device finds its row.
#pragma once

#include <string_view>

#include "netcl/capabilities.h"

namespace netcl::detail {

struct FamilyTraits {
  GPUFamily family;
  std::string_view name;
  // Multiply-adds of one compute unit per clock, and bytes of memory traffic per operation.
  // 0: not known, or decided by the vector width (CPUs).
  int lanes;
  double bytes_per_flop;
  // Starting points for devices of this family, before they are clamped to the device's limits.
  int tile_m, tile_n, tile_k;
  int wg_1d;
  std::pair<int, int> wg_2d;
};

const FamilyTraits& traits_of(GPUFamily family);

// Asks numbers first (compute capability, gfx IP, Intel IP version), names last. Everything whose
// type bits say CPU is a CPU, whatever its name or vendor.
GPUFamily classify(const DeviceQueries& queries);

// True where `text` holds `word` between characters that are no letters or digits, any case.
bool contains_word(std::string_view text, std::string_view word);
// The same without the borders.
bool contains(std::string_view text, std::string_view part);

}  // namespace netcl::detail
