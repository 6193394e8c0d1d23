// Backward: from the newest call to the oldest. A call that uses a result has a higher number than
// the one that made it, so when a call's turn comes, the gradients of its outputs are complete.
#include "autograd/engine.h"

#include <map>
#include <unordered_set>

#include "autograd/anomaly.h"
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"
#include "tensor/access.h"

namespace netcl::detail {
namespace {

Tensor seed_of(const Tensor& root, const Tensor& seed) {
  check<ArgumentError>(static_cast<bool>(root), "[backward] the loss must not be an empty tensor");
  check<ArgumentError>(
      is_followed(root),
      "[backward] the loss must be computed under a tape that is still there, from "
      "a tensor that requires a gradient: shape {}",
      root.shape().to_string());
  if (!seed) return Tensor::full(root.queue(), root.shape(), 1, root.dtype());
  if (!(seed.shape() == root.shape()))
    fail<ShapeError>("[backward] the gradient must have the shape of the loss, {}: {}",
                     root.shape().to_string(), seed.shape().to_string());
  check<DtypeError>(seed.dtype() == root.dtype(),
                    "[backward] the gradient must have the dtype of the loss, {}: {}",
                    name_of(root.dtype()), name_of(seed.dtype()));
  return seed;
}

Tensor sum_of(const Tensor& a, const Tensor& b) { return a ? ops::add(a, b) : b; }

class Engine {
 public:
  Engine(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
         const BackwardOptions& options)
      : options_(options) {
    check<ArgumentError>(seeds.empty() || seeds.size() == roots.size(),
                         "[backward] there must be one gradient per result: {} for {}",
                         seeds.size(), roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto seed = seed_of(roots[i], i < seeds.size() ? seeds[i] : Tensor());
      roots_.emplace_back(followed_state(roots[i]), seed);
    }
  }

  // Null: all leaves. Gradients of these places are kept, the others are freed when they were used.
  // `cut`: a target's gradient does not flow on to what it was computed from.
  void run(const std::set<Place>* targets, bool cut = false) {
    targets_ = targets;
    cut_ = cut;
    find_records();
    const auto deferring = any_deferred_ ? open_deferring() : nullptr;
    for (const auto& [state, seed] : roots_) arrive(state, seed);
    while (!waiting_.empty()) {
      const auto newest = std::prev(waiting_.end());
      const auto record = newest->second;
      waiting_.erase(newest);
      step(*record);
    }
    if (deferring == nullptr) return;
    roots_.clear();
    deferring->finish();
  }

  const Tensor& result(const Place& place) const {
    static const Tensor nothing;
    const auto found = results_.find(place);
    return found == results_.end() ? nothing : found->second;
  }
  const std::vector<std::shared_ptr<GradState>>& leaves() const { return leaves_; }
  // Gradients of values on the way that somebody asked for, set with those of the leaves.
  const std::vector<std::pair<std::shared_ptr<GradState>, Tensor>>& kept_gradients() const {
    return kept_gradients_;
  }

 private:
  // Everything between the roots and the targets, before anything is computed.
  void find_records() {
    std::map<std::uint64_t, const Record*> records;  // by age
    std::vector<const Record*> stack;
    const auto visit = [&](const std::shared_ptr<GradState>& state) {
      if (state == nullptr || state->record == nullptr || is_end(*state)) return;
      const auto* record = state->record.get();
      if (records.emplace(record->id, record).second) stack.push_back(record);
    };
    for (const auto& [state, seed] : roots_) visit(state);
    while (!stack.empty()) {
      const auto& record = *stack.back();
      stack.pop_back();
      any_deferred_ |= record.deferred;
      for (const auto& parent : record.parents) visit(parent);
    }
    if (targets_ == nullptr) return;
    // Oldest first: a record is on the way when a parent of it is a target or on the way.
    for (const auto& [id, record] : records)
      for (const auto& parent : record->parents)
        if (parent != nullptr && leads_on(*parent)) on_the_way_.insert(record);
  }

  bool is_end(const GradState& state) const { return cut_ && targets_->contains(Place(state)); }

  bool leads_on(const GradState& state) const {
    if (targets_ == nullptr) return true;
    return targets_->contains(Place(state)) ||
           (state.record != nullptr && on_the_way_.contains(state.record.get()));
  }

  // A gradient has come to a value.
  void arrive(const std::shared_ptr<GradState>& state, const Tensor& gradient) {
    const Place place(*state);
    auto& sum = results_[place];
    if (state->record == nullptr && !sum) leaves_.push_back(state);
    sum = sum_of(sum, gradient);
    if (state->record == nullptr) return;
    if (state->retains) retained_.emplace(place, state);
    if (!is_end(*state) && leads_on_record(*state->record))
      waiting_.emplace(state->record->id, state->record);
  }

  bool leads_on_record(const Record& record) const {
    return targets_ == nullptr || on_the_way_.contains(&record);
  }

  void step(Record& record) {
    check<ArgumentError>(!record.released,
                         "[backward] what was recorded of {} is gone: it was freed by a backward "
                         "with retain = false, or its tape was reset or closed",
                         record.name);
    check<ArgumentError>(static_cast<bool>(record.backward), "[backward] {} has no gradient",
                         record.name);
    const auto grads = taken_gradients(record);
    const auto results = call(record, grads);
    for (std::size_t i = 0; i < record.parents.size(); ++i) {
      const auto& parent = record.parents[i];
      if (parent == nullptr || i >= results.size() || !results[i] || !leads_on(*parent)) continue;
      arrive(parent, results[i]);
    }
    if (!options_.retain) record.release();
  }

  // Of the outputs; they are complete, and nobody else wants them unless they are targets.
  std::vector<Tensor> taken_gradients(const Record& record) {
    std::vector<Tensor> grads;
    for (std::size_t i = 0; i < record.specs.size(); ++i) {
      const Place place(record, i);
      grads.push_back(result(place));
      if (const auto kept = retained_.find(place); kept != retained_.end())
        kept_gradients_.emplace_back(kept->second, grads.back());
      if (targets_ == nullptr || !targets_->contains(place)) results_.erase(place);
    }
    return grads;
  }

  std::vector<Tensor> call(Record& record, const std::vector<Tensor>& grads) const {
    std::vector<Tensor> inputs, outputs;
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < record.inputs.size(); ++i) {
      inputs.push_back(record.inputs[i].get(record.name, "input", i));
      wanted.push_back(record.parents[i] != nullptr && leads_on(*record.parents[i]));
      if (options_.create_graph && inputs[i] && record.parents[i] != nullptr)
        TensorAccess::set_grad_state(inputs[i], record.parents[i]);
    }
    for (std::size_t i = 0; i < record.outputs.size(); ++i) {
      outputs.push_back(record.outputs[i].get(record.name, "output", i));
      if (!options_.create_graph || !is_floating(record.specs[i].dtype)) continue;
      TensorAccess::set_grad_state(outputs[i], state_of(record.shared_from_this(), i));
    }
    auto results =
        record.backward({inputs, record.attributes, outputs, grads, wanted, options_.create_graph});
    check_results(record, inputs, results);
    if (is_anomaly_detected()) examine_gradients(record, grads, results);
    return results;
  }

  static void check_results(const Record& record, const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& results) {
    check<ArgumentError>(results.size() <= inputs.size(),
                         "[backward] {} must give one gradient per input: {} for {}", record.name,
                         results.size(), inputs.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i] || !inputs[i] || record.parents[i] == nullptr) continue;
      if (!(results[i].shape() == inputs[i].shape()))
        fail<ShapeError>("[backward] the gradient of input {} of {} must have its shape {}: {}", i,
                         record.name, inputs[i].shape().to_string(),
                         results[i].shape().to_string());
      check<DtypeError>(results[i].dtype() == inputs[i].dtype(),
                        "[backward] the gradient of input {} of {} must have its dtype {}: {}", i,
                        record.name, name_of(inputs[i].dtype()), name_of(results[i].dtype()));
    }
  }

  const BackwardOptions options_;
  const std::set<Place>* targets_ = nullptr;
  bool cut_ = false;
  std::vector<std::pair<std::shared_ptr<GradState>, Tensor>> roots_;
  std::unordered_set<const Record*> on_the_way_;
  std::map<std::uint64_t, std::shared_ptr<Record>> waiting_;  // by age
  std::map<Place, Tensor> results_;
  std::vector<std::shared_ptr<GradState>> leaves_;
  std::map<Place, std::shared_ptr<GradState>> retained_;
  std::vector<std::pair<std::shared_ptr<GradState>, Tensor>> kept_gradients_;
  bool any_deferred_ = false;
};

// Dense memory that no other tensor sees: users change gradients in place.
Tensor owned(Tensor gradient) {
  const auto& storage = TensorAccess::storage(gradient);
  const bool alone = storage.use_count() - storage->kept <= 2;  // the caller's and this one
  return alone && gradient.is_contiguous() && gradient.nbytes() == storage->bytes
             ? gradient
             : gradient.clone();
}

}  // namespace

void accumulate_gradients(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                          const BackwardOptions& options) {
  Engine engine(roots, seeds, options);
  engine.run(nullptr);
  for (const auto& [state, gradient] : engine.kept_gradients()) state->add_grad(owned(gradient));
  for (const auto& leaf : engine.leaves()) leaf->add_grad(owned(engine.result(Place(*leaf))));
}

std::vector<Tensor> gradients_of_states(const std::vector<Tensor>& roots,
                                        const std::vector<Tensor>& seeds,
                                        const std::vector<std::shared_ptr<GradState>>& inputs,
                                        const BackwardOptions& options, bool cut) {
  std::set<Place> targets;
  for (const auto& state : inputs)
    if (state != nullptr) targets.insert(Place(*state));
  Engine engine(roots, seeds, options);
  engine.run(&targets, cut);
  std::vector<Tensor> result;
  for (const auto& state : inputs)
    result.push_back(state == nullptr ? Tensor() : engine.result(Place(*state)));
  return result;
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                                 const std::vector<Tensor>& inputs,
                                 const BackwardOptions& options) {
  std::vector<std::shared_ptr<GradState>> states;
  for (const auto& input : inputs) {
    check<ArgumentError>(
        input && is_followed(input),
        "[gradient] the inputs must require gradients, or be computed under a tape "
        "that is still there: shape {}",
        input ? input.shape().to_string() : "of an empty tensor");
    states.push_back(followed_state(input));
  }
  auto result = gradients_of_states(roots, seeds, states, options, false);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!result[i])
      result[i] = Tensor::from_shape(inputs[i].queue(), inputs[i].shape(), inputs[i].dtype());
  return result;
}

}  // namespace netcl::detail
