#include "cl/in_flight.h"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/process.h"
#include "cl/cl.h"
#include "netcl/error.h"

namespace netcl::cl {
namespace {

struct InFlight {
  std::mutex mutex;
  std::vector<std::pair<Event, std::shared_ptr<const void>>> kept;
  std::atomic<bool> any{false};

  void free_ended() {
    std::erase_if(kept, [](const auto& entry) { return has_ended(entry.first); });
    any = !kept.empty();
  }

  static InFlight& instance() {
    static auto* leaked = new InFlight();  // destructors at exit must not free what is in use
    return *leaked;
  }
};

}  // namespace

bool has_ended(const Event& event) noexcept {
  if (!event) return true;
  if (!process::calls_allowed()) return false;
  try {
    return event.is_complete();
  } catch (const DeviceError& error) {
    return error.call() == kAsynchronousCommand;  // it ended with an error
  } catch (...) {
    return false;
  }
}

void keep_until_ended(Event event, std::shared_ptr<const void> memory) noexcept {
  if (has_ended(event)) return;
  auto& in_flight = InFlight::instance();
  try {
    const std::lock_guard lock(in_flight.mutex);
    in_flight.free_ended();
    in_flight.kept.emplace_back(std::move(event), memory);
    in_flight.any = true;
  } catch (...) {
    // No memory for the list: this one is never freed.
    static_cast<void>(new (std::nothrow) std::shared_ptr<const void>(std::move(memory)));
  }
}

void free_ended() noexcept {
  auto& in_flight = InFlight::instance();
  if (!in_flight.any) return;
  try {
    const std::lock_guard lock(in_flight.mutex);
    in_flight.free_ended();
  } catch (...) {  // a mutex that cannot be locked: another time
  }
}

}  // namespace netcl::cl
