// OpenMP's threads, because oneDNN brings them: a pool of our own would fight with them for cores.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#endif

namespace netcl {

// LLVM's runtime (libomp) begins anew in a forked child by itself, and hangs when it is asked for
// anything before it has.
#if defined(_OPENMP) && !defined(KMP_VERSION_MAJOR)
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

namespace {

using Function = std::function<void(std::int64_t begin, std::int64_t end)>;

// The parts come after what was before them and before what is after them. OpenMP orders them so
// too, but ThreadSanitizer does not see how it does: `begun_` and `ended_` say it again.
class Parts {
 public:
  [[gnu::noinline]] Parts(std::int64_t n, std::int64_t count, const Function& f)
      : n_(n), count_(count), f_(f) {
    begun_.store(1, std::memory_order_release);
  }

  [[gnu::noinline]] void run(std::int64_t part) noexcept {
    begun_.load(std::memory_order_acquire);
    try {
      f_(n_ * part / count_, n_ * (part + 1) / count_);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    ended_.fetch_add(1, std::memory_order_release);
  }

  [[gnu::noinline]] void finish() const {
    ended_.load(std::memory_order_acquire);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::int64_t n_, count_;
  const Function& f_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::atomic<std::int64_t> begun_{0}, ended_{0};
};

// Unseen itself: OpenMP's threads read its variables.
[[gnu::no_sanitize("thread")]] void run_all(Parts& parts, std::int64_t count) {
#pragma omp parallel for num_threads(static_cast <int>(count)) schedule(static, 1)
  for (std::int64_t part = 0; part < count; ++part) parts.run(part);
}

}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain, const Function& f) {
  if (n <= 0) return;
#ifdef _OPENMP
  const std::int64_t threads = omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
#else
  const std::int64_t threads = 1;
#endif
  const std::int64_t count =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, threads);
  if (count == 1) return f(0, n);
  guard_threads_in_forks();
  Parts parts(n, count, f);
  run_all(parts, count);
  parts.finish();
}

}  // namespace netcl
