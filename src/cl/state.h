// What a Context and a Queue share among their copies. Higher layers hang their own per-context
// and per-queue objects (buffer pools, programs) on it with `attachment`, so that nothing that owns
// an OpenCL object has to live in static storage.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "netcl/opencl.h"

namespace netcl {

class Attachments {
 public:
  // The one T of this owner, made by `make` on first use.
  template <class T, class Make>
  std::shared_ptr<T> get(Make&& make) {
    const std::lock_guard lock(mutex_);
    auto& slot = slots_[std::type_index(typeid(T))];
    if (!slot) slot = std::shared_ptr<T>(make());
    return std::static_pointer_cast<T>(slot);
  }

  // The same without a share and, but for the first time, without a lock: what is attached stays
  // until the owner goes.
  template <class T, class Make>
  T& ref(Make&& make) {
    const auto place = place_of<T>();
    if (place >= known_.size()) return *get<T>(std::forward<Make>(make));
    if (auto* known = known_[place].load(std::memory_order_acquire)) return *static_cast<T*>(known);
    auto* made = get<T>(std::forward<Make>(make)).get();
    known_[place].store(made, std::memory_order_release);
    return *made;
  }

  template <class T>
  std::shared_ptr<T> find() {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find(std::type_index(typeid(T)));
    return found == slots_.end() ? nullptr : std::static_pointer_cast<T>(found->second);
  }

 private:
  static inline std::atomic<std::size_t> g_places{0};
  template <class T>
  static std::size_t place_of() {
    static const std::size_t place = g_places.fetch_add(1);
    return place;
  }

  std::array<std::atomic<void*>, 8> known_{};
  std::recursive_mutex mutex_;  // one attachment's factory may ask for another
  std::unordered_map<std::type_index, std::shared_ptr<void>> slots_;
};

struct ContextState {
  Ref<_cl_context> context;
  std::vector<Device> devices;
  Attachments attachments;  // last: released before the context
  ~ContextState();
};

// The names of the last commands of a queue: an asynchronous failure is reported by the driver at
// a later call, and this is what can be said about its origin.
class RecentCommands {
 public:
  void add(const char* name) {
    const auto at = next_.fetch_add(1, std::memory_order_relaxed) % names_.size();
    names_[at].store(name, std::memory_order_relaxed);
  }
  std::string to_string() const;  // newest first

 private:
  std::array<std::atomic<const char*>, 8> names_{};  // of interned, never freed names
  std::atomic<unsigned> next_{0};
};

struct QueueState {
  bool is_cpu = false;
  bool profiling = false;
  std::string name;
  Device device;
  Context context;
  Ref<_cl_command_queue> queue;
  RecentCommands recent;
  Attachments attachments;  // last: released before the queue
  ~QueueState();
};

// A name that lives as long as the process, for RecentCommands and profiles.
const char* intern(std::string_view name);

// Finishes every queue that is alive. Called at exit.
void finish_all_queues() noexcept;

// For threads that launch kernels: when the main thread is one of them and calls exit or returns
// from main, the queues are finished before any exit handler runs. A driver may still be compiling
// a kernel then, in a thread of its own, with static objects of its compiler that were made after
// our exit handler was registered and would be destroyed before it is called.
void finish_queues_before_exit_handlers() noexcept;

}  // namespace netcl
