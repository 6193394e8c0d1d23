// The extension netcl._netcl: the library's classes and functions. The package's modules give them
// their documented places.
#include "common.h"
#include "netcl/version.h"

NB_MODULE(_netcl, m) {
  using namespace netcl::python;  // NOLINT: a list of its functions
  nb::set_leak_warnings(false);   // tensors in a module's globals outlive the interpreter
  m.doc() = "The netcl library. Use the modules of the package: netcl, netcl.ops, netcl.nn, ...";
  m.attr("__version__") = NETCL_VERSION;
  m.def("built_with_opencl", &netcl::built_with_opencl,
        "False in a build that has the CPU backend only.");
  bind_errors(m);
  bind_interrupt(m);
  bind_capabilities(m);
  bind_device(m);
  bind_memory(m);
  bind_kernel(m);
  bind_selector(m);
  bind_tuner(m);
  bind_tensor(m);
  bind_ops(m);
  bind_more_ops(m);
  bind_autograd(m);
  bind_jit(m);
  bind_nn(m);
  bind_layers(m);
  bind_losses(m);
  bind_optim(m);
  bind_io(m);
  bind_data(m);
  bind_train(m);
  bind_profiling(m);
}
