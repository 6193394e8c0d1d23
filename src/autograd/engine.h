// Walking a graph back.
#pragma once

#include <set>
#include <vector>

#include "autograd/record.h"

namespace netcl::detail {

// Where a gradient belongs: a leaf, or an output of a record.
struct Place {
  const void* owner;  // the leaf's state or the record
  std::size_t output;

  explicit Place(const GradState& state)
      : owner(state.record ? static_cast<const void*>(state.record.get()) : &state),
        output(state.output) {}
  Place(const Record& record, std::size_t index) : owner(&record), output(index) {}
  auto operator<=>(const Place&) const = default;
};

// Adds the gradients of the roots to grad() of the leaves. An empty seed is ones.
void accumulate_gradients(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                          const BackwardOptions& options);
// The gradients of the roots with respect to `inputs`, zeros where there is no way to one.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                                 const std::vector<Tensor>& inputs, const BackwardOptions& options);
// The same for states; empty tensors where there is no way. `cut`: the gradient of an input does
// not flow on to another one that it was computed from.
std::vector<Tensor> gradients_of_states(const std::vector<Tensor>& roots,
                                        const std::vector<Tensor>& seeds,
                                        const std::vector<std::shared_ptr<GradState>>& inputs,
                                        const BackwardOptions& options, bool cut);

}  // namespace netcl::detail
