// What a call of an op launched, kept so that an equal call is launched again without asking anew
// which variant, which parameters and which arguments: only the memory differs. A key holds all
// that decides (see recipe.cpp); calls whose commands are more than launches on their own tensors
// and on temporary memory keep no recipe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/selector_memo.h"
#include "ops/op.h"

namespace netcl {

class CallRecipe;

// One call on its way: looked up, and then repeated, or run and perhaps recorded. The memory of its
// tensors must be there: computing them would be taken for a part of the call.
class RecipeLookup {
 public:
  RecipeLookup() = default;  // a call that is never remembered
  // `outputs` are those of the caller; none where the call makes them.
  RecipeLookup(const OpDef& op, const Queue& queue, std::span<const Tensor> inputs,
               std::span<const Tensor> outputs, const Attributes& attributes);

  bool is_known() const { return recipe_ != nullptr; }
  const std::vector<TensorSpec>& outputs() const;  // of the call that was recorded
  void repeat(const OpCall& call) const;
  // Runs a call that is not known. A recipe is made at the second time: many calls never come back.
  using Compute = void (*)(const OpCall& call);
  void run(const OpCall& call, Compute compute);

 private:
  void record(const OpCall& call, Compute compute);

  bool is_open_ = false;  // the call may be remembered
  bool is_second_ = false;
  detail::MemoKey key_;
  std::shared_ptr<const CallRecipe> recipe_;
};

// Calls of the ops in the registry are remembered; of others only after this: they must live as
// long as the process and never change.
void remember_calls_of(const OpDef& op);

// The call that this thread records, if any, is not one to be repeated.
void keep_no_recipe();

// How many calls of a queue can be repeated, for tests.
std::size_t known_recipes(const Queue& queue);
// How many calls of this thread were, for tests.
std::size_t repeated_calls();

}  // namespace netcl
