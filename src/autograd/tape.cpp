// Tapes: who records, what is recorded of op calls and of views, and how long it is held.
#include <algorithm>

#include "autograd/derivations.h"
#include "autograd/engine.h"
#include "autograd/tape_state.h"
#include "base/check.h"
#include "ops/dispatch.h"
#include "tensor/following.h"

namespace netcl {
namespace {

struct ThreadTapes {
  std::vector<std::pair<Tape*, detail::TapeState*>> open;  // innermost last
  bool enabled = true;
};
thread_local ThreadTapes t_tapes;

void update_following() {
  const bool records = t_tapes.enabled && !t_tapes.open.empty();
  t_following.derived = records ? &detail::record_derivation : nullptr;
}

// The observer of the op system.
void record_call(OpCall& call) {
  if (!t_following.is_recording()) return;
  if (std::none_of(call.inputs.begin(), call.inputs.end(),
                   [](const Tensor& input) { return input.requires_grad(); }))
    return;
  if (std::none_of(call.outputs.begin(), call.outputs.end(),
                   [](const Tensor& output) { return is_floating(output.dtype()); }))
    return;
  SavedTensors saves;
  if (call.op.saves) {
    std::vector<bool> wanted;
    for (const auto& input : call.inputs) wanted.push_back(input && detail::is_followed(input));
    saves = call.op.saves(wanted, call.attributes);
  }
  detail::record(
      {call.op.name, call.inputs, call.outputs, call.attributes, call.op.backward, saves});
}

}  // namespace

namespace detail {

void TapeState::add(const std::shared_ptr<Record>& record) {
  if (records.size() >= compact_at) {
    std::erase_if(records, [](const auto& one) { return one.expired(); });
    compact_at = std::max<std::size_t>(64, 2 * records.size());
  }
  records.push_back(record);
  ++record->tapes;
}

void TapeState::release_all() {
  for (const auto& one : records)
    if (const auto record = one.lock())
      if (--record->tapes == 0) record->release();
  records.clear();
}

void add_to_open_tapes(const std::shared_ptr<Record>& record) {
  for (const auto& [tape, state] : t_tapes.open) state->add(record);
}

OnlyTape::OnlyTape(TapeState& state) : previous_(std::move(t_tapes.open)) {
  t_tapes.open = {{nullptr, &state}};
}

OnlyTape::~OnlyTape() { t_tapes.open = std::move(previous_); }

GradMode::GradMode(bool on) : previous_(t_tapes.enabled) { set_grad_enabled(on); }
GradMode::~GradMode() { set_grad_enabled(previous_); }

}  // namespace detail

Tape::Tape() : state_(std::make_unique<detail::TapeState>()) {
  [[maybe_unused]] static const bool observing = (set_op_observer(&record_call), true);
  start();
}

Tape::~Tape() {
  stop();
  state_->release_all();
}

void Tape::start() {
  if (is_recording()) return;
  t_tapes.open.emplace_back(this, state_.get());
  update_following();
}

void Tape::stop() {
  std::erase_if(t_tapes.open, [this](const auto& one) { return one.first == this; });
  update_following();
}

void Tape::reset() { state_->release_all(); }

bool Tape::is_recording() const {
  return std::any_of(t_tapes.open.begin(), t_tapes.open.end(),
                     [this](const auto& one) { return one.first == this; });
}

Tape* Tape::current() { return t_tapes.open.empty() ? nullptr : t_tapes.open.back().first; }

bool is_grad_enabled() { return t_tapes.enabled; }

void set_grad_enabled(bool on) {
  t_tapes.enabled = on;
  update_following();
}

// ---- gradients

namespace {

// Gradients that are followed themselves need a tape that records them.
class Recorded {
 public:
  Recorded(Tape& tape, bool create_graph)
      : tape_(tape), starts_(create_graph && !tape.is_recording()), scope_(create_graph) {
    if (starts_) tape_.start();
  }
  ~Recorded() {
    if (starts_) tape_.stop();
  }

 private:
  Tape& tape_;
  bool starts_;
  detail::GradMode scope_;
};

}  // namespace

void Tape::backward(const Tensor& loss, const Tensor& grad, BackwardOptions options) {
  const Recorded recorded(*this, options.create_graph);
  detail::accumulate_gradients({loss}, {grad}, options);
}

std::vector<Tensor> Tape::gradient(const Tensor& of, const std::vector<Tensor>& inputs,
                                   const Tensor& grad, BackwardOptions options) {
  return gradient(std::vector<Tensor>{of}, inputs, {grad}, options);
}

std::vector<Tensor> Tape::gradient(const std::vector<Tensor>& of, const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& grads, BackwardOptions options) {
  const Recorded recorded(*this, options.create_graph);
  return detail::gradients_of(of, grads, inputs, options);
}

// ---- looking at it

std::vector<Node> Tape::nodes() const {
  std::vector<Node> result;
  for (const auto& one : state_->records) {
    const auto record = one.lock();
    if (record == nullptr || record->released) continue;
    result.push_back(Node(detail::state_of(record, 0)));
  }
  return result;
}

std::string Tape::to_string() const {
  std::string text;
  for (const auto& one : state_->records) {
    const auto record = one.lock();
    if (record == nullptr || record->released) continue;
    std::vector<std::string> from;
    for (const auto& parent : record->parents) {
      if (parent == nullptr)
        from.emplace_back("-");
      else
        from.push_back(parent->record ? fmt::format("#{}", parent->record->id) : "leaf");
    }
    text += fmt::format("#{} {}({}) -> {} {}\n", record->id, record->name, join(from, ", "),
                        record->specs[0].shape.to_string(), name_of(record->specs[0].dtype));
  }
  return text;
}

}  // namespace netcl
