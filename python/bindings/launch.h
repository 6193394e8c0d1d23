// Arguments of a kernel launch, with everything that keeps them alive until it returns.
#pragma once

#include <deque>

#include "common.h"
#include "netcl/kernel.h"

namespace netcl::python {

class LaunchArgs {
 public:
  LaunchArgs() = default;
  explicit LaunchArgs(nb::handle sequence);
  const std::vector<KernelArg>& list() const { return args_; }

 private:
  void add(nb::handle value);
  void add_number(nb::handle value);
  bool add_sized(nb::handle value);
  bool add_memory(nb::handle value);
  std::vector<KernelArg> args_;
  std::deque<Buffer> buffers_;  // of pyopencl's objects; a deque, because arguments point at them
  std::vector<nb::object> objects_;  // the values themselves
};

// Local memory of a work-group, as an argument.
struct LocalMemory {
  std::size_t size = 0;
};

// A Kernel, a kernel of a Program, or the one of a KernelLaunch; also pyopencl's. Of a program it
// is the one that is called `name`, else its spec's, else the only one. `device` is meant where a
// program of pyopencl was built for several.
Kernel kernel_of(nb::handle object, const std::string& name = {}, const Device& device = {});

}  // namespace netcl::python
