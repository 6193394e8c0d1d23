// The scope of one thread: takes calls as nodes, and has what users see computed in the end.
#include <algorithm>
#include <exception>

#include "base/log.h"
#include "jit/compute.h"
#include "jit/rules.h"
#include "jit/stats.h"
#include "ops/dispatch.h"
#include "tensor/access.h"

namespace netcl {

using fusion::EngineLock, fusion::NodePtr;

namespace {

// The calls of this thread that wait. Shared by nested scopes.
class Waiting final : public OpDeferrer {
 public:
  bool defer(OpCall& call, const std::vector<TensorSpec>& specs) override {
    const EngineLock lock;
    const auto kind = fusion::kind_of(call, specs);
    if (!kind) return false;
    const auto node = std::make_shared<fusion::Node>(call, specs[0], *kind);
    call.outputs = {node->make_output()};
    if (nodes_.size() >= limit_) forget_computed();
    nodes_.push_back(node);
    fusion::counters().deferred.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  void finish() {
    const EngineLock lock;
    std::vector<NodePtr> wanted;
    for (const auto& weak : nodes_)
      if (auto node = weak.lock(); node != nullptr && node->is_pending() && node->is_visible())
        wanted.push_back(std::move(node));
    if (!wanted.empty()) fusion::compute_nodes(wanted);
    forget_computed();
  }

  // What users see of the nodes that read `to`, directly or through others, while it is unchanged.
  void before_write(const Tensor& to) {
    const EngineLock lock;
    std::vector<NodePtr> readers, wanted;
    for (const auto& weak : nodes_) {
      auto node = weak.lock();
      if (node == nullptr || !node->is_pending()) continue;
      if (std::none_of(node->inputs.begin(), node->inputs.end(),
                       [&](const Tensor& input) { return reads(input, to, readers); }))
        continue;
      if (node->is_visible()) wanted.push_back(node);
      readers.push_back(std::move(node));
    }
    if (!wanted.empty()) fusion::compute_nodes(wanted);
  }

 private:
  static bool reads(const Tensor& input, const Tensor& to, const std::vector<NodePtr>& readers) {
    if (!input) return false;
    if (input.shares_storage(to)) return true;
    if (readers.empty()) return false;
    const auto producer = fusion::pending_node(input);
    return producer != nullptr &&
           std::find(readers.begin(), readers.end(), producer) != readers.end();
  }

  void forget_computed() {
    std::erase_if(nodes_, [](const std::weak_ptr<fusion::Node>& weak) {
      const auto node = weak.lock();
      return node == nullptr || !node->is_pending();
    });
    limit_ = std::max<std::size_t>(2 * nodes_.size(), 256);
  }

  std::vector<std::weak_ptr<fusion::Node>> nodes_;  // in the order of their calls
  std::size_t limit_ = 256;                         // when those that are gone are looked for
};

thread_local Waiting* t_waiting = nullptr;

void on_write(const Tensor& to) {
  if (t_waiting != nullptr) t_waiting->before_write(to);
}

Tensor on_cast(const Tensor& from, DType dtype) {
  return apply("cast", {from}, {{"dtype", std::string(name_of(dtype))}});
}

class OpenedScope final : public DeferringScope {
 public:
  void finish() override { scope_.finish(); }

 private:
  FusionScope scope_;
};

std::unique_ptr<DeferringScope> open_scope() { return std::make_unique<OpenedScope>(); }

}  // namespace

struct FusionScope::Impl {
  std::unique_ptr<Waiting> waiting;  // of the outermost scope
  OpDeferrer* previous = nullptr;
  Following following;
  int exceptions = std::uncaught_exceptions();

  Impl() {
    set_open_deferring(open_scope);
    if (t_waiting == nullptr) {
      waiting = std::make_unique<Waiting>();
      t_waiting = waiting.get();
    }
    previous = set_op_deferrer(t_waiting);
    following = t_following;
    t_following.before_write = on_write;
    t_following.cast = on_cast;
  }

  ~Impl() {
    t_following.before_write = following.before_write;
    t_following.cast = following.cast;
    set_op_deferrer(previous);
    if (waiting != nullptr) t_waiting = nullptr;
  }
};

FusionScope::FusionScope() : impl_(std::make_unique<Impl>()) {}

FusionScope::~FusionScope() {
  if (std::uncaught_exceptions() > impl_->exceptions) return;
  try {
    finish();
  } catch (const std::exception& error) {
    // The values stay computable: whoever looks at one gets the error.
    log::warn(std::string("[jit] ") + error.what());
  }
}

void FusionScope::finish() {
  if (impl_->waiting != nullptr) impl_->waiting->finish();
}

}  // namespace netcl
