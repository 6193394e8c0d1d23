// A call that waits: what the graph of deferred calls is made of. The storage of its result owns
// it, and it owns its inputs, so a result that nobody can look at any more is never computed.
#pragma once

#include <memory>
#include <vector>

#include "netcl/backend.h"
#include "ops/op.h"

namespace netcl::fusion {

enum class NodeKind : std::uint8_t {
  element,    // an ElementFunction of its inputs
  cast,       // the value of its input, rounded when it is stored
  reduction,  // sum, mean, max or min of one input
  product     // matmul, linear, conv2d: held back for what follows
};

class Node final : public detail::Deferred, public std::enable_shared_from_this<Node> {
 public:
  Node(const OpCall& call, TensorSpec spec, NodeKind kind);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void compute() override;

  // The deferred result. Made once, by the scope.
  Tensor make_output();
  // The result is there: moves the memory of `value` into the deferred storage.
  void arrive(const Tensor& value);
  bool is_pending() const { return is_pending_; }
  // Owners of the result that are not graphs: tensors of users.
  bool is_visible() const;
  std::int64_t owners() const { return output.use_count(); }
  // ArgumentError when an input was changed in place since the call.
  void check_versions() const;

  const OpDef& op;
  const Attributes attributes;
  const Queue queue;
  const TensorSpec spec;  // of the result
  const NodeKind kind;
  const std::uint64_t serial;  // inputs have smaller ones
  std::vector<Tensor> inputs;  // not followed by tapes; empty where the call had none
  std::weak_ptr<detail::Storage> output;

 private:
  void release_inputs();
  std::vector<std::uint64_t> versions_;
  bool is_pending_ = true;
};

using NodePtr = std::shared_ptr<Node>;

// The node that has yet to compute a tensor's memory; null when the memory is there.
NodePtr pending_node(const Tensor& tensor);

// One thread at a time changes graphs or computes. What graphs let go of is freed when the
// outermost lock has ended: owners of memory may want locks of their own.
class EngineLock {
 public:
  EngineLock();
  ~EngineLock();
  EngineLock(const EngineLock&) = delete;
  EngineLock& operator=(const EngineLock&) = delete;
};

}  // namespace netcl::fusion
