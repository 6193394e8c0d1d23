// A step of fixed shapes, recorded once and then sent to the device again and again without the
// host work of its ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netcl/tensor.h"

namespace netcl {

struct CaptureStats {
  std::uint64_t eager_calls = 0;  // the function ran and nothing was kept
  std::uint64_t captures = 0;     // it ran and its commands were kept
  std::uint64_t replays = 0;      // it did not run
  std::size_t kept = 0;           // captures held now
  std::size_t commands = 0;       // of the latest call's capture: launches, copies, fills, writes
  std::size_t launches = 0;       // the kernels among them
  std::uint64_t bytes = 0;        // device and host memory that this capture holds
};

// Calls a function of tensors: a forward pass, a backward pass, the update of parameters, all of
// it. For each set of shapes, dtypes and queue of the inputs
//   the first call runs the function as it is (kernels are compiled, state is made),
//   the second runs it and records what it sends to the device,
//   every later one copies the inputs into the recorded step's own and sends the commands again.
// Every call has the effect of running the function once. The four latest sets are kept.
//
// What the host decides is recorded as it was: numbers (a learning rate, the seed of dropout),
// branches, uploaded values. State that changes from call to call belongs on the device and is
// updated in place. docs/capture.md has the rules.
//
// From the second call on the results are the step's own tensors: the next call with the same
// shapes overwrites them. One thread at a time calls; others wait. On the CPU backend, and where
// the function reads values on the host (item(), to_host()), every call runs the function; so it
// does under a tape or in a FusionScope of the caller: these belong inside the function.
class CapturedStep {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  explicit CapturedStep(Function function);  // ArgumentError for an empty one
  ~CapturedStep();
  CapturedStep(CapturedStep&& other) noexcept;
  CapturedStep& operator=(CapturedStep&& other) noexcept;

  // All inputs are on one queue; without inputs it is the active device's. Errors of the function
  // pass through, and those that its ops find on the device (a label out of range) come at the
  // replay that has them.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs = {});

  // Why calls like the latest are not replayed ("item() reads values on the host"); "" when they
  // are, or will be.
  std::string why_not() const;
  CaptureStats stats() const;
  void wait() const;  // until the work of the latest call is done
  void clear();       // forgets all captures; results that were handed out stay valid

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netcl
