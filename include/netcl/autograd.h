// Automatic differentiation. A Tape follows the ops that are called while it is open on this thread
// and that depend on a tensor marked with set_requires_grad(); backward walks them back.
//
//   w.set_requires_grad();
//   Tape tape;
//   auto loss = ops::mean(ops::square(ops::matmul(x, w) - y));
//   tape.backward(loss);             // w.grad()
//
// What is kept, and until when: docs/autograd.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netcl/tensor.h"

namespace netcl {

namespace detail {
struct Record;
struct TapeState;
}  // namespace detail

// How a followed value came to be. A handle; copies are the same node.
class Node {
 public:
  Node() = default;
  static Node of(const Tensor& tensor);  // an empty one when no tape follows it

  explicit operator bool() const { return state_ != nullptr; }
  bool is_leaf() const;
  const std::string& op_name() const;  // "" of a leaf
  std::uint64_t id() const;            // in the order of the calls; 0 of a leaf
  std::vector<Node> parents() const;   // of the inputs that are followed
  const std::string& where() const;    // who called, when detect_anomaly was on; else ""
  Tensor grad() const;
  bool operator==(const Node& other) const = default;

 private:
  friend class Tape;
  explicit Node(std::shared_ptr<detail::GradState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::GradState> state_;
};

struct BackwardOptions {
  bool retain = true;         // false: what was recorded is freed on the way, and gone afterwards
  bool create_graph = false;  // the gradients are followed too, so that they can be differentiated
};

// Records from its construction to stop() or its end. Tapes nest: an inner one does not hide what
// happens from the outer ones. A tape belongs to the thread that made it.
class Tape {
 public:
  Tape();
  ~Tape();  // what only this tape holds is freed
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Adds the gradients of `loss`, weighted with `grad` (ones when empty), to grad() of every leaf
  // that it depends on. When anything fails no grad() has changed.
  void backward(const Tensor& loss, const Tensor& grad = {}, BackwardOptions options = {});
  // The gradients with respect to `inputs` (leaves or values on the way) as a result; grad() of the
  // leaves stays as it is. One that `of` does not depend on is zeros.
  std::vector<Tensor> gradient(const Tensor& of, const std::vector<Tensor>& inputs,
                               const Tensor& grad = {}, BackwardOptions options = {});
  std::vector<Tensor> gradient(const std::vector<Tensor>& of, const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& grads = {}, BackwardOptions options = {});

  void stop();   // records no further; backward still works
  void start();  // records again
  void reset();  // frees what was recorded so far
  bool is_recording() const;
  std::vector<Node> nodes() const;  // that are alive, in the order of the calls
  std::string to_string() const;    // one line per node
  static Tape* current();           // the innermost of this thread; null: none records

 private:
  std::unique_ptr<detail::TapeState> state_;
};

// ---- who is followed. Per thread.
bool is_grad_enabled();
void set_grad_enabled(bool on);

// While alive, nothing is recorded on this thread.
class no_grad {
 public:
  no_grad() : previous_(is_grad_enabled()) { set_grad_enabled(false); }
  ~no_grad() { set_grad_enabled(previous_); }
  no_grad(const no_grad&) = delete;
  no_grad& operator=(const no_grad&) = delete;

 private:
  bool previous_;
};

// Keeps the gradient of a value on the way too, in its grad().
void retain_grad(const Tensor& value);

// ---- finding NaN and infinity. While on, every recorded result and every gradient is read back
// and looked at; the first op that makes one of finite inputs is an AnomalyError that names it and
// the place of its call. Per thread, slow.
class AnomalyError : public Error {
 public:
  using Error::Error;
};
bool is_anomaly_detected();
void set_detect_anomaly(bool on);

class detect_anomaly {
 public:
  explicit detect_anomaly(bool on = true) : previous_(is_anomaly_detected()) {
    set_detect_anomaly(on);
  }
  ~detect_anomaly() { set_detect_anomaly(previous_); }
  detect_anomaly(const detect_anomaly&) = delete;
  detect_anomaly& operator=(const detect_anomaly&) = delete;

 private:
  bool previous_;
};

// What Node::where() says of calls on this thread, in the place of the C++ call stack.
void set_caller_description(std::function<std::string()> describe);

// ---- ops of one's own
// What a backward gets. The tensors are those of the call; grads are empty where the result had no
// influence on what is differentiated.
struct ApplyContext {
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& grads;
  const std::vector<bool>& wanted;  // per input
};
using ApplyForward = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
using ApplyBackward = std::function<std::vector<Tensor>(const ApplyContext& context)>;

// Runs `forward`, unseen by tapes, and records the call with `backward`, which gives one gradient
// per input (an empty one: zero). Written in ops, it can be differentiated again.
std::vector<Tensor> apply_op(const std::string& name, const ApplyForward& forward,
                             const ApplyBackward& backward, const std::vector<Tensor>& inputs);

// fn(inputs), whose values on the way are not kept but computed again for the gradient. `fn` must
// give the same result when it is called again.
std::vector<Tensor> checkpoint(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
    const std::vector<Tensor>& inputs);

// ---- checking gradients
struct GradcheckOptions {
  double step = 1e-6;  // of the central differences, times max(1, |x|)
  double rtol = 1e-5, atol = 1e-6;
  std::size_t max_elements = 64;  // per input; more are sampled
  std::uint64_t seed = 0;
  bool second_order = false;  // check the gradients' gradients too
};

struct GradcheckResult {
  bool ok = true;
  double worst = 0;     // the largest error, as a multiple of what is allowed
  std::string message;  // of the first element that is wrong
  explicit operator bool() const { return ok; }
};

// Compares the gradients of fn with central differences, in float64, on the inputs' device.
GradcheckResult gradcheck(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace netcl
