// The commands of one step in the order in which they were enqueued, ready to be enqueued again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cl/recording.h"
#include "memory/pins.h"
#include "netcl/profiling.h"

namespace netcl {

class Recording final : public cl::CommandRecorder {
 public:
  Recording() = default;
  ~Recording() override;  // waits for writes under way: their bytes are kept here

  // ---- while the step runs
  void launch(cl::LaunchRecord record) override;
  void copy(_cl_command_queue* queue, const Buffer& from, std::size_t from_offset, const Buffer& to,
            std::size_t to_offset, std::size_t bytes) override;
  void fill(_cl_command_queue* queue, const Buffer& buffer, std::size_t offset, std::size_t bytes,
            const void* pattern, std::size_t pattern_bytes) override;
  const void* keep(const void* bytes, std::size_t size) override;
  void write(_cl_command_queue* queue, const Buffer& to, std::size_t offset, std::size_t bytes,
             const void* kept) override;
  void order(const Queue& first, const Queue& second) override;
  void wrote(std::weak_ptr<std::atomic<std::uint64_t>> changes) override;
  bool has_written(const std::atomic<std::uint64_t>* changes) const override;
  void prepare(std::function<void()> prepare) override;
  void check(std::function<void()> check) override;
  void host_read(const char* what) override;
  void decline(const char* reason) override;

  // ---- afterwards
  const std::string& why_not() const { return why_not_; }  // "": the commands are the whole step
  std::size_t commands() const { return commands_.size(); }
  std::size_t launches() const { return launches_; }
  std::size_t kept_bytes() const { return kept_bytes_; }
  // Prepares, then enqueues everything once more. Checks wait for their part of the commands and
  // may throw; what comes after them is then not enqueued, as if the step itself had thrown.
  void replay() const;
  void forget_commands();

 private:
  struct Launch {
    cl::LaunchRecord what;  // its memory is pinned instead
    KernelCost cost;
  };
  struct Copy {
    _cl_command_queue* queue;
    Buffer from, to;
    std::size_t from_offset, to_offset, bytes;
  };
  struct Fill {
    _cl_command_queue* queue;
    Buffer buffer;
    std::size_t offset, bytes;
    std::vector<std::byte> pattern;
  };
  struct Write {
    _cl_command_queue* queue;
    Buffer to;
    std::size_t offset, bytes;
    const void* kept;
  };
  struct Order {
    Queue first, second;
  };
  struct Check {
    std::function<void()> run;
  };
  using Command = std::variant<Launch, Copy, Fill, Write, Order, Check>;

  static void run(const Launch& launch);
  static void run(const Copy& copy);
  static void run(const Fill& fill);
  static void run(const Write& write);
  static void run(const Order& order);
  static void run(const Check& check) { check.run(); }

  void use(_cl_command_queue* queue);
  void use(const Buffer& buffer);
  bool is_wanted() const { return why_not_.empty(); }

  std::unordered_map<_cl_command_queue*, Ref<_cl_command_queue>> queues_;
  std::unordered_map<_cl_mem*, detail::BufferPin> pins_;
  std::vector<Command> commands_;
  std::vector<std::function<void()>> preparations_;
  std::unordered_map<const std::atomic<std::uint64_t>*, std::weak_ptr<std::atomic<std::uint64_t>>>
      written_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
  std::size_t kept_bytes_ = 0, launches_ = 0;
  std::string why_not_;
};

}  // namespace netcl
