// What there is: the ops with their dtypes, variants and tolerances, as data and as a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netcl/dtype.h"
#include "netcl/tensor.h"

namespace netcl {

struct OpInfo {
  std::string name, summary;
  std::vector<DType> dtypes;
  std::vector<std::string> variants;  // "matmul.tiled"; empty for views
  bool has_gradient = false;
  bool is_view = false;
  std::size_t samples = 0;  // of the self-test
  std::string tolerance;    // in words
};

std::vector<OpInfo> list_ops();
// The table of docs/ops.md.
std::string ops_markdown();

// A kernel of yours for an op of netcl's: `run` gets the inputs (contiguous) and the outputs
// (allocated, to be filled). A rule of the KernelSelector that names it brings it into play:
//   register_op_kernel("conv2d", "CONV2D_NAIVE_SMALL", run);
//   get_kernel_selector().register_rule("conv2d", is_small, "CONV2D_NAIVE_SMALL");
// The newest of a name counts.
using OpKernelFunction = std::function<void(const Queue& queue, const std::vector<Tensor>& inputs,
                                            const std::vector<Tensor>& outputs)>;
void register_op_kernel(const std::string& op, const std::string& name, OpKernelFunction run);

}  // namespace netcl
