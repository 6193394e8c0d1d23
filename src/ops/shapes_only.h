// What a computation makes of shapes, without computing it.
#pragma once

#include "ops/dispatch.h"

namespace netcl {

// While alive, calls of ops on this thread check their inputs and make outputs of the right shapes,
// whose elements nobody computes.
class ShapesOnly final : public OpDeferrer {
 public:
  ShapesOnly() : before_(set_op_deferrer(this)) {}
  ~ShapesOnly() override { set_op_deferrer(before_); }
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

  bool defer(OpCall& call, const std::vector<TensorSpec>& specs) override {
    call.outputs.clear();
    for (const auto& spec : specs)
      call.outputs.push_back(Tensor::empty(call.queue, spec.shape, spec.dtype));
    return true;
  }

 private:
  OpDeferrer* before_;
};

}  // namespace netcl
