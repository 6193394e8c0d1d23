// Launching the library's own element kernels: which work-group size and how many items per
// work-item come from the TuningStore where it knows, else from the shipped defaults.
#pragma once

#include <string>
#include <vector>

#include "kernel/launch.h"
#include "netcl/tunables.h"

namespace netcl {

struct ElementKernel {
  const char* path;                  // of the .cl file
  const char* name;                  // of the kernel
  std::vector<std::string> defines;  // without ITEMS, which is a tunable
  std::string dtypes;                // part of the tuning key
};

// A kernel compiled with its parameters.
struct ElementLaunch {
  std::shared_ptr<detail::KernelState> kernel;
  std::size_t local = 1;
  std::size_t items = 1;

  std::size_t global(std::uint64_t n) const {
    const auto per_group = local * items;
    return (n + per_group - 1) / per_group * local;
  }
};

// The search space, the defaults on this device and the store's key, for `n` elements. Problems of
// nearly the same size share a result.
TunableProblem element_problem(const Queue& queue, const ElementKernel& kernel, std::uint64_t n);

ElementLaunch compile_elements(const Queue& queue, const ElementKernel& kernel,
                               const Parameters& parameters);

// The launch for `n` elements, remembered until tuning finds something new. With NETCL_AUTOTUNE=1 a
// kernel that the store does not know is tuned first, on the scratch memory of `scratch`.
ElementLaunch element_launch(const Queue& queue, const ElementKernel& kernel, std::uint64_t n,
                             const std::function<TunableProblem()>& scratch);

}  // namespace netcl
