#include "jit/node.h"

#include <atomic>
#include <mutex>

#include "base/check.h"
#include "jit/compute.h"
#include "tensor/access.h"

namespace netcl::fusion {
namespace {

// Never destroyed: values may be looked at while the process ends.
std::recursive_mutex& engine() {
  static auto* const mutex = new std::recursive_mutex();
  return *mutex;
}

thread_local int t_locks = 0;
// What waits to be freed by this thread. One loop frees it, so that a long chain of nodes, each
// the last owner of the one before, does not become as deep a recursion.
thread_local std::vector<Tensor>* t_garbage = nullptr;

void drop(std::vector<Tensor> tensors) {
  if (t_garbage != nullptr) {
    for (auto& tensor : tensors) t_garbage->push_back(std::move(tensor));
    return;
  }
  t_garbage = &tensors;
  while (!tensors.empty()) {
    const Tensor last = std::move(tensors.back());
    tensors.pop_back();
  }
  t_garbage = nullptr;
}

// Collects garbage as long as the engine is locked.
thread_local std::vector<Tensor> t_kept_back;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

EngineLock::EngineLock() {
  engine().lock();
  ++t_locks;
}

EngineLock::~EngineLock() {
  auto garbage = t_locks == 1 ? std::exchange(t_kept_back, {}) : std::vector<Tensor>();
  --t_locks;
  engine().unlock();
  if (!garbage.empty()) drop(std::move(garbage));
}

Node::Node(const OpCall& call, TensorSpec result, NodeKind which)
    : op(call.op),
      attributes(call.attributes),
      queue(call.queue),
      spec(std::move(result)),
      kind(which),
      serial(next_serial()) {
  inputs.reserve(call.inputs.size());
  for (const auto& input : call.inputs) {
    inputs.push_back(input.detach());
    versions_.push_back(0);
    if (!input) continue;
    const auto& storage = TensorAccess::storage(input);
    storage->kept.fetch_add(1, std::memory_order_relaxed);
    versions_.back() = storage->version.load(std::memory_order_relaxed);
  }
}

Node::~Node() { release_inputs(); }

void Node::release_inputs() {
  for (const auto& input : inputs)
    if (input) TensorAccess::storage(input)->kept.fetch_sub(1, std::memory_order_relaxed);
  auto dropped = std::exchange(inputs, {});
  if (t_locks == 0) return drop(std::move(dropped));
  for (auto& tensor : dropped) t_kept_back.push_back(std::move(tensor));
}

Tensor Node::make_output() {
  auto storage = std::make_shared<detail::Storage>();
  storage->bytes = static_cast<std::size_t>(checked_multiply(
      spec.shape.numel(), static_cast<std::int64_t>(size_of(spec.dtype)), "the number of bytes"));
  storage->defer(shared_from_this());
  output = storage;
  return TensorAccess::make(std::move(storage), queue, spec.shape, spec.dtype);
}

void Node::arrive(const Tensor& value) {
  const auto self = shared_from_this();  // the storage lets go of it
  is_pending_ = false;
  if (const auto storage = output.lock()) {
    const auto& computed = TensorAccess::storage(value);
    storage->lease = std::move(computed->lease);
    storage->may_change_unseen = computed->may_change_unseen.load();
    storage->arrived();
  }
  release_inputs();
}

bool Node::is_visible() const {
  const auto storage = output.lock();
  return storage != nullptr && storage.use_count() - 1 - storage->kept > 0;
}

void Node::check_versions() const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i])
      check<ArgumentError>(
          TensorAccess::storage(inputs[i])->version.load(std::memory_order_relaxed) == versions_[i],
          "[{}] an input was changed in place before the result was computed: input {} of shape {} "
          "(look at the result first, or compute a new tensor)",
          op.name, i, inputs[i].shape().to_string());
}

void Node::compute() {
  const auto self = shared_from_this();
  const EngineLock lock;
  if (is_pending_) compute_nodes({self});
}

NodePtr pending_node(const Tensor& tensor) {
  if (!tensor) return nullptr;
  const auto& storage = TensorAccess::storage(tensor);
  if (!storage->is_deferred.load(std::memory_order_acquire)) return nullptr;
  return std::dynamic_pointer_cast<Node>(storage->source());
}

}  // namespace netcl::fusion
