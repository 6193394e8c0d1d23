#include "jit/recording.h"

#include <cstring>

#include "base/format.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/state.h"
#include "profiling/recorder.h"

namespace netcl {

// ---- recording

void Recording::use(_cl_command_queue* queue) {
  if (!queues_.contains(queue)) queues_.emplace(queue, Ref<_cl_command_queue>::share(queue));
}

void Recording::use(const Buffer& buffer) {
  if (!pins_.contains(buffer.get())) pins_.emplace(buffer.get(), detail::BufferPin(buffer));
}

void Recording::launch(cl::LaunchRecord record) {
  if (!is_wanted()) return;
  use(record.queue.get());
  for (const auto& buffer : record.memory) use(buffer);
  record.memory.clear();
  ++launches_;
  commands_.emplace_back(Launch{std::move(record), profiling::current_cost()});
}

void Recording::copy(_cl_command_queue* queue, const Buffer& from, std::size_t from_offset,
                     const Buffer& to, std::size_t to_offset, std::size_t bytes) {
  if (!is_wanted()) return;
  use(queue), use(from), use(to);
  commands_.emplace_back(Copy{queue, from, to, from_offset, to_offset, bytes});
}

void Recording::fill(_cl_command_queue* queue, const Buffer& buffer, std::size_t offset,
                     std::size_t bytes, const void* pattern, std::size_t pattern_bytes) {
  if (!is_wanted()) return;
  use(queue), use(buffer);
  const auto* from = static_cast<const std::byte*>(pattern);
  commands_.emplace_back(Fill{queue, buffer, offset, bytes, {from, from + pattern_bytes}});
}

// Also when the commands are no longer wanted: the write that is under way reads from here.
const void* Recording::keep(const void* bytes, std::size_t size) {
  kept_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  std::memcpy(kept_.back().get(), bytes, size);
  kept_bytes_ += size;
  return kept_.back().get();
}

void Recording::write(_cl_command_queue* queue, const Buffer& to, std::size_t offset,
                      std::size_t bytes, const void* kept) {
  use(queue);
  if (!is_wanted()) return;
  use(to);
  commands_.emplace_back(Write{queue, to, offset, bytes, kept});
}

void Recording::order(const Queue& first, const Queue& second) {
  if (!is_wanted()) return;
  use(first.get()), use(second.get());
  commands_.emplace_back(Order{first, second});
}

void Recording::wrote(std::weak_ptr<std::atomic<std::uint64_t>> changes) {
  const auto* place = changes.lock().get();
  written_[place] = std::move(changes);
}

bool Recording::has_written(const std::atomic<std::uint64_t>* changes) const {
  return written_.contains(changes);
}

void Recording::prepare(std::function<void()> prepare) {
  if (is_wanted()) preparations_.push_back(std::move(prepare));
}

void Recording::check(std::function<void()> check) {
  if (is_wanted()) commands_.emplace_back(Check{std::move(check)});
}

void Recording::host_read(const char* what) {
  decline(fmt::format("{} reads values on the host", what).c_str());
}

void Recording::decline(const char* reason) {
  if (!is_wanted()) return;
  why_not_ = reason;
  forget_commands();
}

void Recording::forget_commands() {
  commands_.clear();
  preparations_.clear();
  pins_.clear();
}

Recording::~Recording() {
  if (kept_.empty() || !process::calls_allowed()) return;
  for (const auto& [queue, reference] : queues_) {
    try {
      cl::finish(queue);
    } catch (const std::exception& error) {
      log::warn(error.what());
    }
  }
}

// ---- replaying

void Recording::run(const Launch& launch) {
  const auto& what = launch.what;
  auto& queue = what.queue.state();
  queue.recent.add(what.name);
  const bool profiled = profiling::enabled();
  Event done;
  cl::enqueue(queue.queue.get(), what.kernel.get(), what.dimensions, what.global.data(),
              what.has_local ? what.local.data() : nullptr, profiled ? &done : nullptr);
  if (!profiled) return;
  const CostScope cost(launch.cost);
  profiling::record_launch(what.queue, what.name, done, what.argument_bytes);
}

void Recording::run(const Copy& copy) {
  cl::copy(copy.queue, copy.from, copy.from_offset, copy.to, copy.to_offset, copy.bytes);
}

void Recording::run(const Fill& fill) {
  cl::fill(fill.queue, fill.buffer, fill.offset, fill.bytes, fill.pattern.data(),
           fill.pattern.size());
}

void Recording::run(const Write& write) {
  cl::write(write.queue, write.to, write.offset, write.bytes, write.kept, false);
}

void Recording::run(const Order& order) {
  const Event done[] = {cl::marker(order.first.get())};
  cl::flush(order.first.get());
  cl::barrier(order.second.get(), done);
}

void Recording::replay() const {
  for (const auto& prepare : preparations_) prepare();
  for (const auto& [place, changes] : written_)
    if (const auto alive = changes.lock()) alive->fetch_add(1, std::memory_order_relaxed);
  for (const auto& command : commands_) std::visit([](const auto& one) { run(one); }, command);
  for (const auto& [queue, reference] : queues_) cl::flush(queue);
}

}  // namespace netcl
