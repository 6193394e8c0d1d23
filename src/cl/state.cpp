// Contexts and queues as shared states, and the registry through which exit finishes their work.
#include "cl/state.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/process.h"
#include "cl/cl.h"
#include "cl/wait.h"

namespace netcl {
namespace {

// Which states exist, so that wrapping one OpenCL object twice gives one state. Holds no reference
// and is leaked on purpose: it must outlive every static Tensor.
template <class Object, class State>
class Registry {
 public:
  static Registry& instance() {
    static auto* registry = new Registry();
    return *registry;
  }

  // The living state of `object`, or the one that `make` builds.
  template <class Make>
  std::shared_ptr<State> get(Object* object, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (auto found = states_[object].lock()) return found;
    auto state = make();
    states_[object] = state;
    return state;
  }

  void forget(Object* object) noexcept {
    if (!process::calls_allowed()) return;  // a forked child may have inherited a held lock
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(object);
    // Another state may already have taken the place of one whose last owner is just leaving.
    if (found != states_.end() && found->second.expired()) states_.erase(found);
  }

  std::vector<std::shared_ptr<State>> living() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<State>> result;
    for (auto& [object, state] : states_)
      if (auto alive = state.lock()) result.push_back(std::move(alive));
    return result;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Object*, std::weak_ptr<State>> states_;
};

using Contexts = Registry<_cl_context, ContextState>;
using Queues = Registry<_cl_command_queue, QueueState>;

}  // namespace

ContextState::~ContextState() { Contexts::instance().forget(context.get()); }

QueueState::~QueueState() {
  if (!is_cpu) Queues::instance().forget(queue.get());
}

const char* intern(std::string_view name) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string, std::less<>>();
  const std::lock_guard lock(mutex);
  const auto found = names->find(name);
  return (found != names->end() ? found : names->emplace(name).first)->c_str();
}

std::string RecentCommands::to_string() const {
  std::string text;
  const auto next = next_.load(std::memory_order_relaxed);
  for (unsigned back = 1; back <= names_.size(); ++back) {
    const char* name = names_[(next - back) % names_.size()].load(std::memory_order_relaxed);
    if (name == nullptr) break;
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

void finish_all_queues() noexcept {
  for (const auto& state : Queues::instance().living()) {
    try {
      // After Ctrl+C the user wants out: a stuck device then gets the grace time and no more.
      cl::wait_for_queue(Queue(state), interrupt::happened() ? interrupt::kGraceSeconds : 0);
    } catch (const TimeoutError&) {
      log::warn("interrupted, the device did not stop in 3 s, exiting");
      ::_exit(130);
    } catch (const std::exception& error) {
      log::warn(error.what());
    } catch (...) {
      log::warn("a queue could not be finished at exit");
    }
  }
}

void finish_queues_before_exit_handlers() noexcept {
  // exit() destroys the thread_local objects of its caller first. In any other thread than the main
  // one the destructor only says that the thread ended.
  struct Guard {
    ~Guard() {
      if (::getpid() == ::gettid() && process::calls_allowed()) finish_all_queues();
    }
  };
  thread_local const Guard at_end_of_thread;
}

Context Context::wrap(_cl_context* context) {
  process::require("Context");
  check<ArgumentError>(context != nullptr, "[Context] the OpenCL context must not be null");
  return Context(Contexts::instance().get(context, [&] {
    auto state = std::make_shared<ContextState>();
    state->context = Ref<_cl_context>::share(context);
    state->devices = cl::context_devices(context);
    return state;
  }));
}

_cl_context* Context::get() const { return state_ ? state_->context.get() : nullptr; }

const std::vector<Device>& Context::devices() const {
  check<ArgumentError>(state_ != nullptr, "[Context] the context must not be empty");
  return state_->devices;
}

Queue Queue::wrap(_cl_command_queue* queue) {
  process::require("Queue");
  check<ArgumentError>(queue != nullptr, "[Queue] the OpenCL queue must not be null");
  process::at_exit(finish_all_queues);
  return Queue(Queues::instance().get(queue, [&] {
    const auto info = cl::queue_info(queue);
    check<ArgumentError>(info.in_order, "[Queue] the queue must be in order");
    auto state = std::make_shared<QueueState>();
    state->queue = Ref<_cl_command_queue>::share(queue);
    state->profiling = info.profiling;
    state->device = info.device;
    state->name = cl::device_name(info.device);
    state->context = Context::wrap(info.context);
    return state;
  }));
}

Queue Queue::create(const Context& context, const Device& device, bool profiling) {
  check<ArgumentError>(static_cast<bool>(context), "[Queue] a queue needs a context: empty");
  return wrap(cl::create_queue(context.get(), device, profiling).get());
}

namespace {

const QueueState& required(const std::shared_ptr<QueueState>& state) {
  check<ArgumentError>(state != nullptr, "[Queue] the queue must not be empty");
  return *state;
}

}  // namespace

bool Queue::is_cpu() const { return required(state_).is_cpu; }
const std::string& Queue::name() const { return required(state_).name; }
Context Queue::context() const { return required(state_).context; }
Device Queue::device() const { return required(state_).device; }
bool Queue::has_profiling() const { return required(state_).profiling; }
_cl_command_queue* Queue::get() const { return state_ ? state_->queue.get() : nullptr; }
void Queue::finish() const { cl::wait_for_queue(*this, 0); }
void Queue::flush() const {
  if (!is_cpu()) cl::flush(get());
}

CPUQueue::CPUQueue(const std::string& name)
    : Queue([&] {
        auto state = std::make_shared<QueueState>();
        state->is_cpu = true;
        state->name = name;
        return state;
      }()) {}

std::string Device::name() const { return id_ == nullptr ? "cpu" : cl::device_name(*this); }

bool Event::is_complete() const {
  return !ref_ || cl::event_progress(ref_.get()) == cl::Progress::complete;
}
void Event::wait() const { cl::wait(*this, 0, nullptr); }
std::uint64_t Event::start_ns() const { return ref_ ? cl::event_times(ref_.get()).started : 0; }
std::uint64_t Event::end_ns() const { return ref_ ? cl::event_times(ref_.get()).ended : 0; }

}  // namespace netcl
