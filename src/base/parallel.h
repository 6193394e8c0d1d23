// Splitting a range of work over the cores of the host.
#pragma once

#include <cstdint>
#include <functional>

namespace netcl {

// Calls f(begin, end) for parts of [0, n), each of at least `grain` (but the last), on several
// threads where that pays; returns when all are done. An exception of a part is thrown again.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& f);

}  // namespace netcl
