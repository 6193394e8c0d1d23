// Fusion: calls of ops inside a scope wait until somebody looks at a result, and are then computed
// together, a chain of element-wise ops as one kernel. Nothing else changes: what cannot be fused
// runs as always, and values may be looked at anywhere. docs/jit.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "netcl/tensor.h"

namespace netcl {

// While alive, calls on this thread wait. Scopes nest; the outermost computes.
class FusionScope {
 public:
  FusionScope();
  ~FusionScope();  // finishes; where an exception ends it, values stay computable instead
  FusionScope(const FusionScope&) = delete;
  FusionScope& operator=(const FusionScope&) = delete;

  // Computes everything that a user can still see. Calls after it wait again.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What jit() returns: calls `F` in a scope. `F` runs at every call, so it may do anything; only
// the kernels are kept from call to call.
template <class F>
class Jitted {
 public:
  explicit Jitted(F function) : function_(std::move(function)) {}

  template <class... Args>
  std::invoke_result_t<F&, Args...> operator()(Args&&... args) {
    return call(function_, std::forward<Args>(args)...);
  }
  template <class... Args>
  std::invoke_result_t<const F&, Args...> operator()(Args&&... args) const {
    return call(function_, std::forward<Args>(args)...);
  }

 private:
  template <class G, class... Args>
  static std::invoke_result_t<G&, Args...> call(G& function, Args&&... args) {
    FusionScope scope;
    if constexpr (std::is_void_v<std::invoke_result_t<G&, Args...>>) {
      std::invoke(function, std::forward<Args>(args)...);
      scope.finish();
    } else {
      auto result = std::invoke(function, std::forward<Args>(args)...);
      scope.finish();
      return result;
    }
  }

  F function_;
};

// jit([](Tensor a, Tensor b) { return ops::relu(a * b + 1.0); })(a, b)
template <class F>
Jitted<std::decay_t<F>> jit(F&& function) {
  return Jitted<std::decay_t<F>>(std::forward<F>(function));
}

// What the process did so far.
struct FusionStats {
  std::uint64_t deferred = 0;     // calls that waited
  std::uint64_t groups = 0;       // kernels' worth of fused nodes
  std::uint64_t launches = 0;     // of fused kernels, second stages of reductions included
  std::uint64_t fused_nodes = 0;  // calls that were computed together with others
  std::uint64_t compiled = 0;     // fused kernels that were made, also from the disk cache
  std::uint64_t fallbacks = 0;    // groups that had to be computed op by op
};
FusionStats fusion_stats();

// How a function is computed: one entry per kernel, in order.
struct FusedGroup {
  std::vector<std::string> ops;      // in the order of their calls
  std::vector<std::string> inputs;   // "float32 (16, 64)", each read once
  std::vector<std::string> outputs;  // what is stored
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::string source;  // of the generated kernel; "" where an op's own kernel runs
  std::string reason;  // why the group ends there
};

struct Explanation {
  std::vector<FusedGroup> groups;
  std::string to_string(bool with_source = false) const;
};

// Runs `function` in a scope and tells what was computed in it.
Explanation explain_call(const std::function<void()>& function);

template <class F, class... Args>
Explanation explain(F&& function, Args&&... args) {
  return explain_call([&] {
    // The results have to be seen, or nothing would be computed.
    jit(std::ref(function))(args...);
  });
}

}  // namespace netcl
