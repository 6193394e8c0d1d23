#include "autograd/record.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/tape_state.h"
#include "base/check.h"
#include "netcl/ops.h"
#include "tensor/access.h"
#include "tensor/following.h"

namespace netcl::detail {
namespace {

// The memory of tensors that are there for their shape alone.
class NoValues final : public Deferred {
 public:
  void compute() override {
    fail<Error>("[tape] a backward reads a value that its op does not declare in `saves`");
  }
};

Tensor without_values(const Tensor& like) {
  static const auto* const nothing = new std::shared_ptr<Deferred>(std::make_shared<NoValues>());
  auto storage = std::make_shared<Storage>();
  storage->bytes = like.nbytes();
  storage->defer(*nothing);
  return TensorAccess::make(std::move(storage), like.queue(), like.shape(), like.dtype());
}

}  // namespace

// ---- GradState

Tensor GradState::grad() const {
  const std::lock_guard lock(mutex_);
  return grad_;
}

void GradState::set_grad(Tensor gradient) {
  const std::lock_guard lock(mutex_);
  grad_ = std::move(gradient);
}

void GradState::add_grad(const Tensor& gradient) {
  const std::lock_guard lock(mutex_);
  grad_ = grad_ ? ops::add(grad_, gradient) : gradient;
}

// ---- SavedTensor

SavedTensor::SavedTensor(const Tensor& tensor, bool with_values) {
  if (!tensor) return;
  if (!with_values) {
    tensor_ = without_values(tensor);
    return;
  }
  tensor_ = tensor;
  TensorAccess::set_grad_state(tensor_, nullptr);
  storage_ = TensorAccess::storage(tensor);
  version_ = storage_->version.load(std::memory_order_relaxed);
  storage_->kept.fetch_add(2, std::memory_order_relaxed);  // tensor_ and storage_
}

SavedTensor::~SavedTensor() {
  if (storage_ != nullptr) storage_->kept.fetch_sub(2, std::memory_order_relaxed);
}

SavedTensor::SavedTensor(SavedTensor&& other) noexcept
    : tensor_(std::exchange(other.tensor_, Tensor())),
      storage_(std::exchange(other.storage_, nullptr)),
      version_(other.version_) {}

SavedTensor& SavedTensor::operator=(SavedTensor&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(storage_, other.storage_);
  std::swap(version_, other.version_);
  return *this;
}

Tensor SavedTensor::get(const std::string& op, const char* what, std::size_t index) const {
  if (storage_ != nullptr) {
    const auto now = storage_->version.load(std::memory_order_relaxed);
    check<ArgumentError>(
        now == version_,
        "[backward] {} needs its {} {} of shape {} as it was, but it was changed in "
        "place {} times since then",
        op, what, index, tensor_.shape().to_string(), now - version_);
  }
  return tensor_;
}

// ---- Record

// Chains may be as long as a training run: one after the other, not one inside the other.
Record::~Record() {
  thread_local std::vector<std::shared_ptr<GradState>>* t_waiting = nullptr;
  if (t_waiting != nullptr) {
    for (auto& parent : parents) t_waiting->push_back(std::move(parent));
    return;
  }
  auto waiting = std::move(parents);
  t_waiting = &waiting;
  while (!waiting.empty()) {
    const auto last = std::move(waiting.back());
    waiting.pop_back();
  }
  t_waiting = nullptr;
}

void Record::release() noexcept {
  released = true;
  inputs.clear();
  outputs.clear();
  backward = nullptr;
}

std::uint64_t next_record_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::shared_ptr<GradState> state_of(std::shared_ptr<Record> record, std::size_t output) {
  auto state = std::make_shared<GradState>();
  state->record = std::move(record);
  state->output = output;
  return state;
}

std::shared_ptr<GradState> followed_state(const Tensor& tensor) {
  const auto& state = TensorAccess::grad_state(tensor);
  if (state == nullptr || !state->follows) return nullptr;
  if (state->record != nullptr && state->record->released) return nullptr;
  return state;
}

bool is_followed(const Tensor& tensor) { return followed_state(tensor) != nullptr; }

void record(RecordedCall call) {
  auto made = std::make_shared<Record>();
  for (const auto& input : call.inputs)
    made->parents.push_back(input && is_floating(input.dtype()) ? followed_state(input) : nullptr);
  if (std::all_of(made->parents.begin(), made->parents.end(),
                  [](const auto& parent) { return parent == nullptr; }))
    return;
  made->name = std::move(call.name);
  made->backward = std::move(call.backward);
  made->attributes = call.attributes;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    made->inputs.emplace_back(call.inputs[i], call.saves.input(i));
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    made->outputs.emplace_back(call.outputs[i], call.saves.output(i));
  made->id = next_record_id();
  if (is_anomaly_detected()) examine_results(*made, call.inputs, call.outputs);
  publish(made, call.outputs);
}

void publish(const std::shared_ptr<Record>& record, std::vector<Tensor>& outputs) {
  if (record->id == 0) record->id = next_record_id();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& output = outputs[i];
    record->specs.push_back({output.shape(), output.dtype()});
    record->deferred |= TensorAccess::storage(output)->is_deferred;
    if (!is_floating(output.dtype())) continue;
    TensorAccess::set_grad_state(output, state_of(record, i));
  }
  add_to_open_tapes(record);
}

}  // namespace netcl::detail
