// Running an op: validation, outputs, the choice of the variant, tuned parameters.
#pragma once

#include "ops/op.h"
#include "tensor/following.h"

namespace netcl {

class OpDeferrer;

// Calls an op. Inputs must be on one queue; those that were left out are empty tensors.
std::vector<Tensor> call_op(const OpDef& op, std::vector<Tensor> inputs,
                            const Attributes& attributes = {});
// The same into tensors of the caller, which may be views, also of the inputs.
void call_op_into(const OpDef& op, std::vector<Tensor> inputs, const Attributes& attributes,
                  const std::vector<Tensor>& outputs);
// The first output of an op by its name.
Tensor apply(std::string_view op, std::vector<Tensor> inputs, const Attributes& attributes = {});
// The same for a list in braces, which would copy its tensors once more.
struct TensorRef {
  const Tensor* tensor;
  TensorRef(const Tensor& t) : tensor(&t) {}  // NOLINT: stands for it
};
Tensor apply(std::string_view op, std::initializer_list<TensorRef> inputs,
             const Attributes& attributes = {});

// While alive, calls of `op` on this thread run `variant` ("matmul.tiled" or "MATMUL_TILED"); one
// that declines is an ArgumentError with its reason. Ops called inside are not affected.
class ForcedVariant {
 public:
  ForcedVariant(const OpDef& op, std::string_view variant);
  ~ForcedVariant();
  ForcedVariant(const ForcedVariant&) = delete;
  ForcedVariant& operator=(const ForcedVariant&) = delete;

 private:
  const OpDef* previous_op_;
  const OpVariant* previous_;
};

// A variant of a user, which a rule of the selector can name.
void register_variant(const std::string& op, OpVariant variant);

// The variant that a call would run, with its configuration.
struct VariantChoice {
  const OpVariant* variant = nullptr;
  KernelConfig config;
  std::string reason;
};
VariantChoice choose_variant(const OpCall& call);

// The search of a variant's parameters on the tensors of `call`, whose outputs are overwritten.
TunableProblem tunable_problem(const OpCall& call, const OpVariant& variant,
                               const KernelConfig& config);

// While alive, what this thread calls runs at once, and nobody is told of it: the state inside of
// ops. For the layers above that run ops of their own accord.
class InsideOps {
 public:
  InsideOps();
  ~InsideOps();
  InsideOps(const InsideOps&) = delete;
  InsideOps& operator=(const InsideOps&) = delete;

 private:
  NotFollowed not_followed_;
  OpDeferrer* deferrer_;
};

// Told of every call of call_op, on the thread that made it, when its outputs are there (or
// deferred). It may mark them. For the layers above.
using OpObserver = void (*)(OpCall& call);
void set_op_observer(OpObserver observer);

// Takes calls in the place of running them, and sees to it that their outputs are computed when
// somebody looks at them. For the layers above.
class OpDeferrer {
 public:
  virtual ~OpDeferrer() = default;
  // True: `call.outputs` are made, of these specs, and deferred. False: the call is to be run now.
  virtual bool defer(OpCall& call, const std::vector<TensorSpec>& specs) = 0;
};
// Of this thread; returns the previous one. Not in force inside of ops.
OpDeferrer* set_op_deferrer(OpDeferrer* deferrer);
OpDeferrer* op_deferrer();

// While alive, calls on this thread are deferred where they can be. finish() computes what users
// can see; a scope that only ends leaves its values computable.
class DeferringScope {
 public:
  virtual ~DeferringScope() = default;
  virtual void finish() = 0;
};
// How the layer that defers lets those below it open a scope; null where it has not been used.
using OpenDeferring = std::unique_ptr<DeferringScope> (*)();
void set_open_deferring(OpenDeferring open);
std::unique_ptr<DeferringScope> open_deferring();

}  // namespace netcl
