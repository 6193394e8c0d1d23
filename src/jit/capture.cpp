// CapturedStep: which calls run the function, which record it, which replay a recording.
#include "netcl/capture.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "base/check.h"
#include "base/log.h"
#include "base/process.h"
#include "jit/recording.h"
#include "memory/private_pools.h"
#include "ops/dispatch.h"
#include "tensor/following.h"

namespace netcl {
namespace {

constexpr std::size_t kMostCaptures = 4;
constexpr const char* kNoCommands = "the CPU backend has no commands to record";
constexpr const char* kWithinStep = "it is part of a step that is being recorded";
constexpr const char* kWithinTape = "a tape around the call follows it";
constexpr const char* kWithinScope = "a scope around the call defers its ops";
using Tensors = std::vector<Tensor>;

// What a capture is good for.
struct Signature {
  Queue queue;
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;

  bool fits(const Queue& other, const Tensors& inputs) const {
    if (!(queue == other) || inputs.size() != shapes.size()) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].dtype() != dtypes[i] || !(inputs[i].shape() == shapes[i])) return false;
    return true;
  }

  std::string to_string() const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      texts.push_back(fmt::format("{} {}", name_of(dtypes[i]), shapes[i].to_string()));
    return fmt::format("({}) on {}", join(texts, ", "), queue.name());
  }
};

// A recorded step with the memory of its commands. Inputs and outputs go before the pools; the
// recording waits for its writes first of all.
struct Capture {
  detail::PrivatePools pools;
  Tensors inputs, outputs;
  Recording recording;

  std::uint64_t bytes() const { return pools.bytes_allocated() + recording.kept_bytes(); }
};

struct Entry {
  Signature signature;
  std::string why_not;  // always run as it is
  std::unique_ptr<Capture> capture;
};

Signature signature_of(const Queue& queue, const Tensors& inputs) {
  Signature signature{queue, {}, {}};
  for (const auto& input : inputs) {
    signature.shapes.push_back(input.shape());
    signature.dtypes.push_back(input.dtype());
  }
  return signature;
}

Queue queue_of(const Tensors& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check<ArgumentError>(static_cast<bool>(inputs[i]),
                         "[CapturedStep] the inputs must not be empty (default-made): input {}", i);
    check<DeviceError>(inputs[i].queue() == inputs[0].queue(),
                       "[CapturedStep] all inputs must be on one queue: input 0 is on {}, input {} "
                       "on {}",
                       inputs[0].queue().name(), i, inputs[i].queue().name());
  }
  return inputs.empty() ? get_active_device().queue : inputs[0].queue();
}

// Inputs and results are values: gradients do not pass through a step that may be a replay.
Tensors unfollowed(Tensors tensors) {
  for (auto& tensor : tensors) tensor = tensor.detach();
  return tensors;
}

// Calls of ops wait, in a scope of the caller: what they read must not change under them.
bool is_deferring() { return op_deferrer() != nullptr || t_following.before_write != nullptr; }

bool is_same(const Tensor& a, const Tensor& b) {
  return a.shares_storage(b) && a.offset() == b.offset() && a.strides() == b.strides();
}

// Results of one call may be inputs of the next. One that lies in another input's memory is copied
// aside before that is overwritten.
void set_inputs(const Tensors& own, const Tensors& given) {
  Tensors from = given;
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t j = 0; j < own.size(); ++j)
      if (i != j && from[i].shares_storage(own[j])) from[i] = given[i].clone();
  for (std::size_t i = 0; i < own.size(); ++i)
    if (!is_same(own[i], from[i])) own[i].copy_from(from[i]);
}

}  // namespace

struct CapturedStep::Impl {
  Function function;
  mutable std::recursive_mutex mutex;  // a step may call itself while it runs as it is
  std::list<Entry> entries;            // latest first
  std::string why_not;
  CaptureStats stats;
  Queue queue;  // of the latest call

  std::list<Entry>::iterator find(const Queue& on, const Tensors& inputs) {
    return std::find_if(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return entry.signature.fits(on, inputs); });
  }

  // The entry of a signature, made if it is not there, and the latest from now on.
  Entry& entry_of(const Queue& on, const Tensors& inputs) {
    const auto found = find(on, inputs);
    if (found != entries.end())
      entries.splice(entries.begin(), entries, found);
    else
      entries.push_front({signature_of(on, inputs), {}, nullptr});
    while (entries.size() > kMostCaptures) entries.pop_back();
    return entries.front();
  }

  Tensors run(const Queue& on, const Tensors& inputs) {
    auto outputs = unfollowed(function(inputs));
    ++stats.eager_calls;
    why_not = on.is_cpu() ? kNoCommands : entry_of(on, inputs).why_not;
    return outputs;
  }

  Tensors record(const Queue& on, const Tensors& inputs) {
    auto capture = std::make_unique<Capture>();
    {
      const cl::RecordingScope recorded(&capture->recording);
      const detail::PrivatePoolScope pools(capture->pools);
      for (const auto& input : inputs)
        capture->inputs.push_back(Tensor::empty(on, input.shape(), input.dtype()));
      {
        const cl::RecordingScope unrecorded(nullptr);
        set_inputs(capture->inputs, inputs);
      }
      capture->outputs = unfollowed(function(capture->inputs));
      for (const auto& output : capture->outputs)
        if (output) output.buffer();  // computed here and now, not when somebody looks at it
    }
    auto& entry = entry_of(on, inputs);
    auto outputs = capture->outputs;
    if (capture->recording.why_not().empty())
      keep(entry, std::move(capture));
    else
      decline(entry, capture->recording.why_not());
    why_not = entry.why_not;
    return outputs;
  }

  void keep(Entry& entry, std::unique_ptr<Capture> capture) {
    ++stats.captures;
    log::debug(3, "captured a step of {}: {} commands, {} of them launches; {} bytes kept",
               entry.signature.to_string(), capture->recording.commands(),
               capture->recording.launches(), capture->bytes());
    entry.capture = std::move(capture);
  }

  void decline(Entry& entry, const std::string& reason) {
    ++stats.eager_calls;
    entry.why_not = reason;
    log::warn(fmt::format("a step of {} is run anew at each call: {}", entry.signature.to_string(),
                          reason));
  }

  Tensors replay(const Queue& on, const Tensors& inputs) {
    auto& entry = entry_of(on, inputs);
    why_not.clear();
    set_inputs(entry.capture->inputs, inputs);
    entry.capture->recording.replay();
    ++stats.replays;
    return entry.capture->outputs;
  }

  // A part of something that needs to see the ops themselves.
  Tensors run_within(const Tensors& inputs, const char* reason) {
    auto outputs = function(inputs);
    ++stats.eager_calls;
    why_not = reason;
    return outputs;
  }

  Tensors call(const Tensors& given) {
    const auto on = queue_of(given);
    const std::lock_guard lock(mutex);
    queue = on;
    if (cl::is_recording()) return run_within(given, kWithinStep);
    if (t_following.is_recording()) return run_within(given, kWithinTape);
    if (is_deferring()) return run_within(given, kWithinScope);
    const auto inputs = unfollowed(given);
    const auto found = on.is_cpu() ? entries.end() : find(on, inputs);
    if (found == entries.end() || !found->why_not.empty()) return run(on, inputs);
    return found->capture ? replay(on, inputs) : record(on, inputs);
  }
};

CapturedStep::CapturedStep(Function function) : impl_(std::make_unique<Impl>()) {
  check<ArgumentError>(static_cast<bool>(function),
                       "[CapturedStep] the function must not be empty");
  impl_->function = std::move(function);
}

CapturedStep::~CapturedStep() = default;
CapturedStep::CapturedStep(CapturedStep&& other) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&& other) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs) {
  process::require("CapturedStep");
  return impl_->call(inputs);
}

std::string CapturedStep::why_not() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->why_not;
}

CaptureStats CapturedStep::stats() const {
  const std::lock_guard lock(impl_->mutex);
  auto stats = impl_->stats;
  for (const auto& entry : impl_->entries) stats.kept += entry.capture ? 1 : 0;
  if (impl_->entries.empty() || !impl_->entries.front().capture) return stats;
  const auto& latest = *impl_->entries.front().capture;
  stats.commands = latest.recording.commands();
  stats.launches = latest.recording.launches();
  stats.bytes = latest.bytes();
  return stats;
}

void CapturedStep::wait() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->queue) impl_->queue.finish();
}

void CapturedStep::clear() {
  const std::lock_guard lock(impl_->mutex);
  impl_->entries.clear();
  impl_->why_not.clear();
}

}  // namespace netcl
