// What the variants of convolution share: prologues, the usual launches, and the calls that they
// are made of.
#pragma once

#include "ops/conv2d/sizes.h"
#include "ops/dispatch.h"
#include "ops/kernels.h"
#include "ops/panels.h"

namespace netcl::conv {

inline ConvSizes sizes_of_forward(const OpCall& call) {
  return forward_sizes("conv2d", call.inputs[0].shape(), call.inputs[1].shape(), call.attributes);
}
inline ConvSizes sizes_of_data(const OpCall& call) {
  return data_sizes("conv2d_backward_data", call.inputs[0].shape(), call.inputs[1].shape(),
                    call.attributes);
}
// Of the filters alone.
inline ConvSizes sizes_of_filters(const Tensor& w, std::int64_t groups) {
  ConvSizes s;
  s.groups = groups, s.K = w.size(0), s.C = w.size(1) * groups, s.R = w.size(2), s.S = w.size(3);
  return s;
}

// What follows the sum: of conv2d's inputs.
struct Epilogue {
  Tensor bias, residual;  // may be empty
  std::int64_t activation = 0;

  // What its kernels are compiled for.
  std::int64_t bits() const { return activation * 2 + (residual ? 1 : 0); }
  std::int32_t has_bias() const { return bias ? 1 : 0; }
  // A kernel wants a tensor in the place of the bias; one without reads nothing of it.
  const Tensor& bias_or(const Tensor& other) const { return bias ? bias : other; }
  std::string defines() const {
    return define("ACTIVATION", activation) +
           (residual ? define("HAS_RESIDUAL", 1) : std::string());
  }
  // y and, if there is one, the residual of the same place: a kernel without has no parameter for
  // it.
  OpArgs& add_results(OpArgs& args, const Tensor& y) const {
    args.tensor(y);
    return residual ? args.tensor(residual) : args;
  }
};
inline Epilogue epilogue_of(const OpCall& call) {
  return {call.has(2) ? call.inputs[2] : Tensor(), call.has(3) ? call.inputs[3] : Tensor(),
          call.attributes.integer("activation")};
}

inline std::int64_t bit(DType dtype) { return static_cast<std::int64_t>(dtype); }

// Integers as wide as vector_macros' vectors, for the masks of lanes.cl.
inline std::string mask_macros(DType dtype, std::int64_t vec) {
  const auto* bits = compute_dtype(dtype) == DType::float64 ? "long" : "int";
  const auto lanes = bits + std::to_string(vec);
  return define("BITS", bits) + define("BITSV", lanes) + define("AS_BITSV", "as_" + lanes) +
         define("AS_ACCV", "as_" + std::string(compute_type(dtype)) + std::to_string(vec));
}

// A work-group size that fits a 1-D kernel without local memory. CPU drivers run a group as a
// vectorised loop, so that there, too, it should not be 1.
constexpr std::int64_t kGroup1d = 64;

// One work-item per element, `count` of them.
inline void enqueue_items(const Queue& queue, const KernelPtr& kernel, const OpArgs& args,
                          std::int64_t count, std::int64_t group = kGroup1d) {
  const auto local = clamped_local(kernel, group);
  args.enqueue(queue, kernel, rounded_up(count, static_cast<std::int64_t>(local)), local);
}

// What a work-item may keep in local memory where that is a core's own cache.
inline std::int64_t near_elements(const ExtendedDeviceProfile& profile, DType work) {
  return static_cast<std::int64_t>(profile.local_mem_size / 4 / size_of(work));
}

// Until the cores are done with `items` work-items of so many cycles.
inline double cycles_of_items(double cycles, std::int64_t items,
                              const ExtendedDeviceProfile& profile) {
  constexpr double kItemCycles = 1000;
  return (cycles + kItemCycles) * rounds_of(items, profile.compute_units);
}
constexpr double kCopyCycles = 8;  // of copying a vector into local memory

std::string nothing_to_sum(const ConvSizes& s);
// The arguments of a kernel that computes y from all inputs in one go; `geometry` has to live on.
OpArgs whole_args(const OpCall& call, const Epilogue& epilogue, const ConvGeometry& geometry);

std::vector<OpVariant> forward_variants();
std::vector<OpVariant> backward_data_variants();
std::vector<OpVariant> backward_weights_variants();

}  // namespace netcl::conv
