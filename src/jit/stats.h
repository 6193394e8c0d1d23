// Counters of the process, and the recorder behind explain().
#pragma once

#include <atomic>

#include "netcl/jit.h"

namespace netcl::fusion {

struct Counters {
  std::atomic<std::uint64_t> groups{0}, launches{0}, fused_nodes{0}, compiled{0}, fallbacks{0},
      deferred{0};
};
Counters& counters();

// Of this thread; null: nobody wants to know.
inline thread_local Explanation* t_explanation = nullptr;

}  // namespace netcl::fusion
