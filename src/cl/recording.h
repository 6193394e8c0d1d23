// The commands of one thread, seen as they are enqueued. A capture installs a recorder for its
// thread; everything below the tensors reports to it what it has sent to a queue. Without one this
// costs the test of a thread-local pointer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "netcl/opencl.h"

namespace netcl::cl {

struct LaunchRecord {
  Queue queue;
  Ref<_cl_kernel> kernel;  // of this launch alone, so that its arguments stay as they are
  const char* name;        // interned
  unsigned dimensions;
  std::array<std::size_t, 3> global, local;
  bool has_local;  // false: the driver chooses
  double argument_bytes;
  std::vector<Buffer> memory;  // what the arguments point to: kernels do not own it
};

class CommandRecorder {
 public:
  virtual ~CommandRecorder() = default;
  virtual void launch(LaunchRecord record) = 0;
  virtual void copy(_cl_command_queue* queue, const Buffer& from, std::size_t from_offset,
                    const Buffer& to, std::size_t to_offset, std::size_t bytes) = 0;
  virtual void fill(_cl_command_queue* queue, const Buffer& buffer, std::size_t offset,
                    std::size_t bytes, const void* pattern, std::size_t pattern_bytes) = 0;
  // Memory for the bytes of a write that lives as long as the recorder; then the write itself.
  virtual const void* keep(const void* bytes, std::size_t size) = 0;
  virtual void write(_cl_command_queue* queue, const Buffer& to, std::size_t offset,
                     std::size_t bytes, const void* kept) = 0;
  // Memory that the thread took for a tensor.
  virtual void allocated(const Buffer& buffer, std::size_t bytes) {
    static_cast<void>(buffer), static_cast<void>(bytes);
  }
  // Whether replays write the memory again that was taken while recording.
  virtual bool writes_again() const { return true; }
  // What comes next on `second` waits for what is on `first`.
  virtual void order(const Queue& first, const Queue& second) = 0;
  // Elements were changed in place, which their owner counts: replays change them, and count, too.
  virtual void wrote(std::weak_ptr<std::atomic<std::uint64_t>> changes) = 0;
  virtual bool has_written(const std::atomic<std::uint64_t>* changes) const = 0;
  // To be run before every replay: what the commands read, but others compute.
  virtual void prepare(std::function<void()> prepare) = 0;
  // The host takes part at this place: `check` reads a verdict of the device and may throw.
  virtual void check(std::function<void()> check) = 0;
  // The host has looked at values, and nobody knows what it made of them.
  virtual void host_read(const char* what) = 0;
  // The step cannot be repeated by its commands alone.
  virtual void decline(const char* reason) = 0;
};

inline constinit thread_local CommandRecorder* t_recorder = nullptr;
inline constinit thread_local const char* t_reader = nullptr;
inline bool is_recording() { return t_recorder != nullptr; }

// Commands of this thread go to `recorder` (null: to nobody) until the end of the scope.
class RecordingScope {
 public:
  explicit RecordingScope(CommandRecorder* recorder)
      : before_(std::exchange(t_recorder, recorder)) {}
  ~RecordingScope() { t_recorder = before_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  CommandRecorder* before_;
};

// What the reads in this scope are called in messages; the outermost name counts.
class ReaderName {
 public:
  explicit ReaderName(const char* name)
      : before_(std::exchange(t_reader, t_reader == nullptr ? name : t_reader)) {}
  ~ReaderName() { t_reader = before_; }
  ReaderName(const ReaderName&) = delete;
  ReaderName& operator=(const ReaderName&) = delete;

 private:
  const char* before_;
};

// Counts a change in place, also in the replays of a capture.
inline void count_change(const std::shared_ptr<std::atomic<std::uint64_t>>& changes) {
  changes->fetch_add(1, std::memory_order_relaxed);
  if (t_recorder != nullptr) [[unlikely]]
    t_recorder->wrote(changes);
}

// For code that counts or draws on the host: a replay would repeat what it had at the time.
inline void changes_on_host(const char* reason) {
  if (t_recorder != nullptr) [[unlikely]]
    t_recorder->decline(reason);
}

// For ops that let the device look at the caller's values: runs `check` now, and in a capture at
// the same place of every replay. `check` owns what it needs.
template <class Check>
void run_check(Check&& check) {
  if (t_recorder != nullptr) [[unlikely]] {
    t_recorder->check(check);
    const RecordingScope unrecorded(nullptr);
    check();
    return;
  }
  check();
}

}  // namespace netcl::cl
