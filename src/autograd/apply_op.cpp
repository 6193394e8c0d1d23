// Ops of users: a forward that tapes do not see, and the backward that stands for it.
#include "autograd/record.h"
#include "autograd/tape_state.h"
#include "base/check.h"
#include "tensor/following.h"

namespace netcl {
namespace {

std::vector<Tensor> detached(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const auto& tensor : tensors) result.push_back(tensor.detach());
  return result;
}

// A result that is one of the inputs would share its mark.
void check_outputs(const std::string& name, const std::vector<Tensor>& outputs) {
  check<ArgumentError>(!outputs.empty(), "[{}] the forward must give at least one tensor", name);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check<ArgumentError>(static_cast<bool>(outputs[i]), "[{}] output {} must not be empty", name,
                         i);
}

}  // namespace

std::vector<Tensor> apply_op(const std::string& name, const ApplyForward& forward,
                             const ApplyBackward& backward, const std::vector<Tensor>& inputs) {
  check<ArgumentError>(static_cast<bool>(forward), "[{}] there must be a forward function", name);
  const bool recording = t_following.is_recording();
  std::vector<Tensor> outputs;
  {
    const no_grad unseen;
    outputs = detached(forward(detached(inputs)));
  }
  check_outputs(name, outputs);
  if (!recording) return outputs;
  detail::RecordBackward run;
  if (backward)
    run = [backward](const OpGradient& g) {
      return backward(ApplyContext{g.inputs, g.outputs, g.grads, g.wanted});
    };
  detail::record({name, inputs, outputs, {}, std::move(run), {}});
  return outputs;
}

}  // namespace netcl
