// Splitting a range of work over the cores of the host.
#pragma once

#include <cstdint>
#include <functional>

namespace netcl {

// Calls f(begin, end) for parts of [0, n), each of at least `grain` (but the last), on several
// threads where that pays; returns when all are done. An exception of a part is thrown again.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& f);

// To be called before OpenMP's threads are used: forked children then compute on one thread instead
// of waiting for threads that they do not have. parallel_for does so itself.
void guard_threads_in_forks();

}  // namespace netcl
