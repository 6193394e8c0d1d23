#include "tensor/following.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "cl/recording.h"
#include "tensor/access.h"

namespace netcl {

void before_write(const char* op, const Tensor& to, std::span<const Tensor> sources) {
  if (t_following.is_recording()) {
    check<ArgumentError>(!to.requires_grad(),
                         "[{}] a tensor that a tape follows must not be changed in place: shape {} "
                         "(compute a new one, or change it under no_grad)",
                         op, to.shape().to_string());
    const bool followed = std::any_of(sources.begin(), sources.end(),
                                      [](const Tensor& source) { return source.requires_grad(); });
    check<ArgumentError>(!followed,
                         "[{}] a value that a tape follows must not be written into other memory, "
                         "where its gradient is lost: shape {} (use ops, or detach() it)",
                         op, to.shape().to_string());
  }
  if (t_following.before_write != nullptr) t_following.before_write(to);
  cl::count_change(detail::changes_of(TensorAccess::storage(to)));
}

namespace detail {
namespace {

std::mutex& deferring() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

}  // namespace

void Storage::defer(std::shared_ptr<Deferred> source) {
  const std::lock_guard lock(deferring());
  deferred_ = std::move(source);
  is_deferred.store(true, std::memory_order_release);
}

std::shared_ptr<Deferred> Storage::source() const {
  const std::lock_guard lock(deferring());
  return deferred_;
}

void Storage::arrived() {
  std::shared_ptr<Deferred> done;  // goes after the lock: it may own further storages
  const std::lock_guard lock(deferring());
  std::swap(done, deferred_);
  is_deferred.store(false, std::memory_order_release);
}

void Storage::compute() const {
  if (const auto source = this->source()) source->compute();
  netcl::check(!is_deferred, "[tensor] a deferred value was not computed");
}

}  // namespace detail
}  // namespace netcl
