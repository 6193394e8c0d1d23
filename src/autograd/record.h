// The graph that tapes build. It hangs on the tensors: a followed tensor has a GradState, that of a
// computed one points to the Record of the call, and a Record to the GradStates of its inputs.
// Tapes hold records weakly: a value that nobody uses any more takes its part of the graph with it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "netcl/autograd.h"
#include "netcl/backend.h"
#include "ops/op.h"

namespace netcl::detail {

// Of a followed tensor. Leaves are told apart by its address, results by record and output.
struct GradState {
  std::shared_ptr<Record> record;  // null: a leaf
  std::size_t output = 0;
  std::atomic<bool> retains{false};  // the gradient of a result is kept as well
  std::atomic<bool> follows{true};   // off: a leaf that was unmarked

  Tensor grad() const;
  void set_grad(Tensor gradient);
  // Adds `gradient`, which nobody else owns.
  void add_grad(const Tensor& gradient);

 private:
  mutable std::mutex mutex_;
  Tensor grad_;
};

// A tensor that a backward will need. Counted as a graph's share of its memory; when that was
// changed in place meanwhile, looking at it is an error.
class SavedTensor {
 public:
  SavedTensor() = default;
  // With its values, or only what it looks like.
  SavedTensor(const Tensor& tensor, bool with_values);
  ~SavedTensor();
  SavedTensor(SavedTensor&& other) noexcept;
  SavedTensor& operator=(SavedTensor&& other) noexcept;

  // Not followed. `what` names it in the error.
  Tensor get(const std::string& op, const char* what, std::size_t index) const;

 private:
  Tensor tensor_;
  DeviceArray storage_;  // null: without values
  std::uint64_t version_ = 0;
};

using RecordBackward = std::function<std::vector<Tensor>(const OpGradient& gradient)>;

// One call.
struct Record : std::enable_shared_from_this<Record> {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record();

  std::uint64_t id = 0;  // calls that use a result have a higher one
  std::string name;
  RecordBackward backward;  // empty: there is none, which is an error when it is needed
  Attributes attributes;
  std::vector<std::shared_ptr<GradState>> parents;  // per input; null: not followed
  std::vector<SavedTensor> inputs, outputs;
  std::vector<TensorSpec> specs;  // of the outputs
  std::string where;              // the caller, when anomalies are detected
  bool deferred = false;          // its values may be computed later
  std::atomic<int> tapes{0};
  std::atomic<bool> released{false};

  void release() noexcept;  // frees what was saved; the graph ends here from now on
};

// A state of one of its results.
std::shared_ptr<GradState> state_of(std::shared_ptr<Record> record, std::size_t output);

// Whether gradients flow through a tensor: a leaf, or a result whose record is still there.
bool is_followed(const Tensor& tensor);
// Its state; null when it is not followed.
std::shared_ptr<GradState> followed_state(const Tensor& tensor);

// What a new record is made of; inputs and outputs are those of the call.
struct RecordedCall {
  std::string name;
  const std::vector<Tensor>& inputs;
  std::vector<Tensor>& outputs;  // get marked
  const Attributes& attributes;
  RecordBackward backward;
  SavedTensors saves;
};
void record(RecordedCall call);
// Gives a record that is otherwise complete its number, marks `outputs` as its results and tells
// the open tapes.
void publish(const std::shared_ptr<Record>& record, std::vector<Tensor>& outputs);

std::uint64_t next_record_id();

}  // namespace netcl::detail
