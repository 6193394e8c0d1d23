// Keys and records for the tests of the tuning store; each number gives different ones.
#pragma once

#include <limits>
#include <string>

#include "netcl/tuning_store.h"

namespace netcl::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline TuningKey key_of(int number, const std::string& source = "hash-a") {
  return {"Some Device", "driver 1.2", "matmul", source, {256, static_cast<std::size_t>(number)},
          "float32"};
}

inline TuningRecord record_of(int number) {
  return {.local_size = {8, static_cast<std::size_t>(number) + 1},
          .parameters = {{"TILE_M", number}, {"VEC", -1}},
          .runtime_us = 0.1 + number,
          .default_us = 1e3 / 7,
          .candidates = {{{8, 8}, {{"TILE_M", 16}}, 12.5, ""},
                         {{16, 16}, {}, kInfinity, "wrong result"}}};
}

}  // namespace netcl::test
