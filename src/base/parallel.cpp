// OpenMP's threads, because oneDNN brings them: a pool of our own would fight with them for cores.
#include "base/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#endif

namespace netcl {

#ifdef _OPENMP
namespace {
// A forked child has none of the threads, and libgomp would wait for them for ever. With one thread
// it asks for none. Threads that the child starts itself have OpenMP threads of their own.
void in_child() { omp_set_num_threads(1); }
}  // namespace

void guard_threads_in_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(registered);
}
#else
void guard_threads_in_forks() {}
#endif

void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& f) {
  if (n <= 0) return;
#ifdef _OPENMP
  const std::int64_t threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
#else
  const std::int64_t threads = 1;
#endif
  const std::int64_t parts =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, threads);
  if (parts == 1) return f(0, n);
  guard_threads_in_forks();
  std::exception_ptr failure;
  std::mutex mutex;
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (std::int64_t part = 0; part < parts; ++part) {
    try {
      f(n * part / parts, n * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace netcl
