// checkpoint: a function whose values on the way are computed again when its gradient is wanted.
#include <optional>

#include "autograd/engine.h"
#include "autograd/tape_state.h"
#include "base/check.h"
#include "tensor/access.h"
#include "tensor/following.h"

namespace netcl {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using States = std::vector<std::shared_ptr<detail::GradState>>;

// What the results depend on that was there before record number `first`: the inputs, and whatever
// else the function reads, such as weights.
States states_outside(const std::vector<Tensor>& results, std::uint64_t first) {
  States outside, stack;
  std::set<detail::Place> seen;
  const auto push = [&](const std::shared_ptr<detail::GradState>& state) {
    if (state == nullptr || !seen.insert(detail::Place(*state)).second) return;
    const bool inside = state->record != nullptr && state->record->id >= first;
    (inside ? stack : outside).push_back(state);
  };
  for (const auto& result : results) push(detail::followed_state(result));
  while (!stack.empty()) {
    const auto state = std::move(stack.back());
    stack.pop_back();
    for (const auto& parent : state->record->parents) push(parent);
  }
  return outside;
}

struct Again {
  Function fn;
  States input_states, outside;

  // Empty for the inputs' values, then one gradient per state outside.
  std::vector<Tensor> operator()(const OpGradient& g) const {
    const auto count = input_states.size();
    std::vector<Tensor> inputs(g.inputs.begin(),
                               g.inputs.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      if (inputs[i]) TensorAccess::set_grad_state(inputs[i], input_states[i]);
    std::vector<Tensor> result(count);
    const auto grads = gradients(g, inputs);
    result.insert(result.end(), grads.begin(), grads.end());
    return result;
  }

 private:
  std::vector<Tensor> gradients(const OpGradient& g, const std::vector<Tensor>& inputs) const {
    detail::TapeState scratch;
    std::optional<detail::OnlyTape> alone;
    if (!g.differentiable) alone.emplace(scratch);  // else the open tapes must see it
    const auto results = recorded(inputs);
    check<ArgumentError>(results.size() == g.grads.size(),
                         "[checkpoint] the function must do the same when it is called again: it "
                         "gave {} results, now {}",
                         g.grads.size(), results.size());
    std::vector<Tensor> roots, seeds;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!g.grads[i] || !detail::is_followed(results[i])) continue;
      roots.push_back(results[i]);
      seeds.push_back(g.grads[i]);
    }
    if (roots.empty()) return std::vector<Tensor>(outside.size());
    return detail::gradients_of_states(
        roots, seeds, outside, {.retain = g.differentiable, .create_graph = g.differentiable},
        true);
  }

  std::vector<Tensor> recorded(const std::vector<Tensor>& inputs) const {
    const detail::GradMode on(true);
    return fn(inputs);
  }
};

}  // namespace

std::vector<Tensor> checkpoint(const Function& fn, const std::vector<Tensor>& inputs) {
  if (!t_following.is_recording()) return fn(inputs);
  auto made = std::make_shared<detail::Record>();
  made->name = "checkpoint";
  std::vector<Tensor> outputs;
  Again again{fn, {}, {}};
  {
    // Recorded once, to learn what it depends on; then the values on the way go.
    const auto first = detail::next_record_id();
    detail::TapeState scratch;
    const detail::OnlyTape alone(scratch);
    const auto results = fn(inputs);
    again.outside = states_outside(results, first);
    for (const auto& result : results) outputs.push_back(result.detach());
    scratch.release_all();
  }
  if (again.outside.empty() || outputs.empty()) return outputs;
  for (const auto& input : inputs) {
    again.input_states.push_back(TensorAccess::grad_state(input));
    made->inputs.emplace_back(input, true);
    made->parents.emplace_back();
  }
  for (const auto& state : again.outside) {
    made->inputs.emplace_back();
    made->parents.push_back(state);
  }
  made->backward = std::move(again);
  publish(made, outputs);
  return outputs;
}

}  // namespace netcl
