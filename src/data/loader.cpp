// The loader: threads that take the batches of an epoch in order, and the place where they wait to
// be given out in the same order.
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/interrupt.h"
#include "data/batch_maker.h"

namespace netcl::data {
namespace {

void check_options(const LoaderOptions& options) {
  check<ArgumentError>(options.batch > 0, "[Loader] the batch size must be positive: {}",
                       options.batch);
  check<ArgumentError>(options.workers >= 0 && options.workers <= 1024,
                       "[Loader] the number of workers must be in [0, 1024]: {}", options.workers);
  check<ArgumentError>(options.prefetch > 0, "[Loader] at least one batch must be prefetched: {}",
                       options.prefetch);
  for (const auto& transform : options.transforms)
    check<ArgumentError>(static_cast<bool>(transform), "[Loader] a transform must not be empty");
}

std::int64_t count_batches(std::int64_t samples, const LoaderOptions& options) {
  return samples / options.batch + (options.drop_last || samples % options.batch == 0 ? 0 : 1);
}

}  // namespace

struct Loader::Impl {
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  struct Slot {
    Batch batch;
    std::exception_ptr failure;
  };
  // What a worker needs to make a batch, whatever the loader does meanwhile.
  struct Task {
    std::int64_t index = 0, epoch = 0;
    std::uint64_t seed = 0, run = 0;
    Order order;
  };

  Impl(std::shared_ptr<const Dataset> given, LoaderOptions given_options)
      : dataset(std::move(given)),
        options(std::move(given_options)),
        maker(dataset, options),
        samples(dataset->size()),
        batches(count_batches(samples, options)),
        seed(options.seed) {
    if (!options.queue) options.queue = get_active_device().queue;
    check<ArgumentError>(batches > 0,
                         "[Loader] an epoch must have a batch: {} samples in batches of {}{}",
                         samples, options.batch, options.drop_last ? ", full ones only" : "");
    try {
      for (int i = 0; i < options.workers; ++i) threads.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      ++run;
    }
    wanted.notify_all();
    for (auto& thread : threads) thread.join();
    threads.clear();
  }

  // Forgets what is under way and will begin at the given place.
  void go_to(std::int64_t new_epoch, std::int64_t new_position) {
    std::map<std::int64_t, Slot> old;  // destroyed outside the lock
    const std::lock_guard lock(mutex);
    ++run;
    active = false;
    slots.swap(old);
    epoch = new_epoch;
    position = next_task = new_position;
  }

  // Begins the epoch if it has not begun. The order is made outside the lock: only one thread uses
  // the loader, and workers do not look while it is not active.
  void activate() {
    if (active) return;
    auto indices = std::make_shared<std::vector<std::int64_t>>();
    if (options.shuffle) {
      *indices = shuffled(samples, seed, static_cast<std::uint64_t>(epoch));
    } else {
      indices->resize(static_cast<std::size_t>(samples));
      std::iota(indices->begin(), indices->end(), 0);
    }
    {
      const std::lock_guard lock(mutex);
      order = std::move(indices);
      active = true;
    }
    wanted.notify_all();
  }

  bool has_task() const {
    return active && next_task < batches && next_task < position + options.prefetch;
  }

  Task take_task() { return {next_task++, epoch, seed, run, order}; }

  Slot make(const Task& task) const {
    const auto begin = task.index * options.batch;
    const auto end = std::min(begin + options.batch, samples);
    const auto& all = *task.order;
    try {
      return {maker.make(task.index, {all.begin() + begin, all.begin() + end}, task.seed,
                         task.epoch, [&] { return run != task.run; }),
              nullptr};
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      wanted.wait(lock, [&] { return stopping || has_task(); });
      if (stopping) return;
      auto task = take_task();
      lock.unlock();
      auto slot = make(task);
      lock.lock();
      if (run == task.run) {
        slots.emplace(task.index, std::move(slot));
        ready.notify_one();
        continue;
      }
      // Too late: what was made goes, and not under the lock.
      lock.unlock();
      slot = {};
      lock.lock();
    }
  }

  // The slot at `position`; stays in the map when it is an error.
  void wait_for_slot(std::unique_lock<std::mutex>& lock) {
    const auto there = [&] { return slots.contains(position); };
    while (!there()) {
      if (!interrupt::enabled()) {
        ready.wait(lock, there);
      } else if (!ready.wait_for(lock, std::chrono::milliseconds(10), there)) {
        lock.unlock();
        interrupt::poll();
        lock.lock();
      }
    }
  }

  Batch take_batch() {
    std::unique_lock lock(mutex);
    if (threads.empty()) {
      if (!slots.contains(position)) {
        next_task = position;
        const auto task = take_task();
        lock.unlock();
        auto slot = make(task);
        lock.lock();
        slots.emplace(task.index, std::move(slot));
      }
    } else {
      wait_for_slot(lock);
    }
    const auto found = slots.find(position);
    if (found->second.failure) std::rethrow_exception(found->second.failure);
    auto batch = std::move(found->second.batch);
    slots.erase(found);
    ++position;
    lock.unlock();
    wanted.notify_one();
    return batch;
  }

  const std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  const data_detail::BatchMaker maker;
  const std::int64_t samples, batches;
  const pid_t process = ::getpid();
  std::uint64_t seed;

  mutable std::mutex mutex;
  std::condition_variable wanted, ready;  // there may be a task; there may be a batch
  std::atomic<std::uint64_t> run = 0;     // changes when what is under way is of no use any more
  bool stopping = false, active = false;  // active: order is that of epoch
  std::int64_t epoch = 0, position = 0, next_task = 0;
  Order order;
  std::map<std::int64_t, Slot> slots;  // at most options.prefetch
  std::vector<std::thread> threads;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options) {
  check<ArgumentError>(dataset != nullptr, "[Loader] there must be a dataset");
  check_options(options);
  impl_ = std::make_unique<Impl>(std::move(dataset), std::move(options));
}

Loader::~Loader() {
  // In a forked child there are no threads to join, and their locks may be held for ever.
  if (impl_->process != ::getpid()) (void)impl_.release();
}

std::int64_t Loader::batches() const { return impl_->batches; }

std::int64_t Loader::epoch() const { return impl_->epoch; }

std::optional<Batch> Loader::next() {
  check<ForkError>(impl_->process == ::getpid(),
                   "[Loader] the threads of a loader do not survive a fork; make one in the child");
  if (impl_->position == impl_->batches) {
    impl_->go_to(impl_->epoch + 1, 0);
    return std::nullopt;
  }
  impl_->activate();
  return impl_->take_batch();
}

void Loader::start_epoch(std::int64_t epoch) {
  check<ArgumentError>(epoch >= 0, "[start_epoch] the epoch must not be negative: {}", epoch);
  impl_->go_to(epoch, 0);
  impl_->activate();
}

LoaderState Loader::state() const {
  return {impl_->seed,          impl_->epoch,           impl_->position,         impl_->samples,
          impl_->options.batch, impl_->options.shuffle, impl_->options.drop_last};
}

void Loader::restore(const LoaderState& state) {
  auto mine = this->state();
  check<ArgumentError>(
      state.samples == mine.samples && state.batch == mine.batch && state.shuffle == mine.shuffle &&
          state.drop_last == mine.drop_last,
      "[restore] the state must be of a loader like this one (samples, batch, shuffle, drop_last "
      "{}, {}, {}, {}): {}, {}, {}, {}",
      mine.samples, mine.batch, mine.shuffle, mine.drop_last, state.samples, state.batch,
      state.shuffle, state.drop_last);
  check<ArgumentError>(state.epoch >= 0 && state.position >= 0 && state.position <= batches(),
                       "[restore] the epoch must not be negative and the position in [0, {}]: {} "
                       "and {}",
                       batches(), state.epoch, state.position);
  impl_->go_to(state.epoch, state.position);
  impl_->seed = state.seed;
}

}  // namespace netcl::data
