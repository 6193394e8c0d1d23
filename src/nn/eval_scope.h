// A model that is asked, not trained.
#pragma once

#include "netcl/autograd.h"
#include "netcl/nn.h"

namespace netcl::nn {

// In evaluation mode and unseen by tapes for the scope, whatever happens in it.
class EvalScope {
 public:
  explicit EvalScope(Module& model) : model_(model), before_(model.is_training()) { model.eval(); }
  ~EvalScope() { model_.train(before_); }
  EvalScope(const EvalScope&) = delete;
  EvalScope& operator=(const EvalScope&) = delete;

 private:
  Module& model_;
  bool before_;
  no_grad off_;
};

}  // namespace netcl::nn
