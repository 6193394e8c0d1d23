// How the layers above follow what happens to tensors: tapes are told of views and copies, values
// that are computed later of writes. All of it is per thread and off unless somebody set it.
#pragma once

#include <span>

#include "netcl/tensor.h"

namespace netcl {

// How a tensor came from another one outside of the op system.
enum class Derivation : std::uint8_t {
  reshape,  // the same elements in the same order
  permute,  // args: the axes
  expand,   // size-1 axes repeated, new axes in front
  slice,    // args: axis, first position, step
  copy      // the same elements in other memory, as another dtype or on another queue
};

struct Following {
  // While a tape records: gets the derived tensor to mark it.
  void (*derived)(const Tensor& from, Tensor& to, Derivation how,
                  std::span<const std::int64_t> args) = nullptr;
  // While calls are deferred: before the elements of a tensor change.
  void (*before_write)(const Tensor& to) = nullptr;
  // While calls are deferred: in the place of a conversion.
  Tensor (*cast)(const Tensor& from, DType dtype) = nullptr;

  bool is_recording() const { return derived != nullptr; }
};

inline thread_local Following t_following;

// While alive, nobody follows: for code below the level of ops.
class NotFollowed {
 public:
  NotFollowed() : saved_(t_following) { t_following = {}; }
  ~NotFollowed() { t_following = saved_; }
  NotFollowed(const NotFollowed&) = delete;
  NotFollowed& operator=(const NotFollowed&) = delete;

 private:
  Following saved_;
};

inline Tensor derived(const Tensor& from, Tensor to, Derivation how,
                      std::span<const std::int64_t> args = {}) {
  if (t_following.is_recording() && from.requires_grad()) t_following.derived(from, to, how, args);
  return to;
}

// To be called before the elements of `to` change in place. ArgumentError where a tape would lose
// track of the change.
void before_write(const char* op, const Tensor& to, std::span<const Tensor> sources = {});

}  // namespace netcl
