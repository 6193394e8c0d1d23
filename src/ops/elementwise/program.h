// A kernel that computes element by element, described: its operands, statements and results. The
// element-wise ops are programs of one statement; fused chains are longer ones.
#pragma once

#include <string>
#include <vector>

#include "ops/elementwise/broadcast.h"
#include "ops/kernels.h"

namespace netcl {

struct ElementOperand {
  enum class Access { linear, strided, scalar, single };  // single: one element of memory for all
  enum class Inner { any, one, zero };                    // its step along the innermost loop
  DType dtype = DType::float32;
  Access access = Access::linear;
  Inner inner = Inner::any;
};
// Fewer than 256: what tells the kernels of operands apart.
std::int64_t operand_bits(const ElementOperand& operand);

struct ElementProgram {
  DType compute = DType::float32;  // of the arithmetic
  std::vector<ElementOperand> inputs;
  std::vector<std::string> names;       // of the inputs' values in the statements
  std::vector<std::string> statements;  // "const V t0 = a * b;", in order
  std::vector<ElementOperand> outputs;  // linear or strided
  std::vector<std::string> results;     // an expression per output
  std::vector<std::string> scalars;     // names of further arguments of type V
  std::size_t rank = 0;                 // of the strided operands' loops
  bool wide = false;                    // more than 2^31 elements
  bool own_functions = false;           // those of float_math.cl: for CPUs
  std::string preamble;                 // what the statements use beyond the usual functions
};

// What a work-item owns, and how many of them make a group. One of:
//   vec > 1   so many neighbours, as one vector; no operand may be strided
//   part > 0  so many neighbours, in vectors of `vec` > 1, for CPUs; strided operands take single
//             elements or gathers where their step along the innermost loop is not 1
//   else      `items` elements, a local size apart
struct ElementShape {
  int vec = 1, items = 1;
  std::int64_t local = 64;
  std::int64_t part = 0;  // an argument of the kernel
  bool fetches = false;   // memory is asked for ahead: what a cache holds comes soon enough
  bool streams = false;   // results go past the caches; only with `part` and linear operands

  std::int64_t per_item() const { return part > 0 ? part : vec > 1 ? vec : items; }
  std::int64_t bits() const {  // what tells kernels apart
    return items * 256 + vec * 4 + (part > 0 ? 2 : 0) + (streams ? 1 : 0) + (fetches ? 128 : 0);
  }
};

// The kernel "elementwise". Arguments: inputs, outputs, ulong n, with parts ulong part, a long
// offset per tensor, long8 sizes and a long8 of strides per strided tensor (innermost first), then
// scalar inputs and scalars.
std::string render_elements(const ElementProgram& program, const ElementShape& shape);

// The pieces of it, for kernels with loops of their own. Parameters and arguments follow each other
// as above: pointers, then (behind whatever the kernel has) offsets, sizes, strides, numbers.
struct ElementParameters {
  std::vector<std::string> pointers, values;
};
ElementParameters element_parameters(const ElementProgram& program);
// For elements and vectors of `vec` of them.
std::string element_prologue(const ElementProgram& program, int vec);
// Loads and statements of the elements from number `i` on. V is defined from there on.
std::string element_values(const ElementProgram& program, int vec);

// What is launched: tensors and numbers in the order of the program's operands.
struct ElementArgs {
  std::vector<Tensor> inputs;         // empty where the program has a scalar
  std::vector<double> scalar_inputs;  // in their order
  std::vector<Tensor> outputs;
  std::vector<double> scalars;
};

inline constexpr std::size_t kMaxElementAxes = 8;  // of the kernels' loops

// The axes of all tensors seen in the shape of the first output.
BroadcastLoops element_loops(const ElementArgs& args);
// How a kernel over these loops gets at a tensor.
ElementOperand::Access element_access(const BroadcastLoops& loops, std::size_t operand,
                                      bool is_input);
// Fills in accesses, rank and index width.
void describe_operands(const ElementArgs& args, const BroadcastLoops& loops,
                       ElementProgram& program);

// The arguments of ElementParameters::values. The vectors are passed by address: `vectors` must
// outlive the launch.
std::vector<KernelArg> element_arguments(const ElementProgram& program, const ElementArgs& args,
                                         const BroadcastLoops& loops, std::vector<Long8>& vectors);
void enqueue_elements(const Queue& queue, const KernelPtr& kernel, const ElementProgram& program,
                      const ElementArgs& args, const BroadcastLoops& loops,
                      const ElementShape& shape);

// Whether vectors suit the operands: all are linear, or on a CPU the innermost loop is long enough.
bool takes_vectors(const ElementProgram& program, const BroadcastLoops& loops,
                   const ExtendedDeviceProfile& profile);
// How many elements a work-item walks through, for a CPU; a power of two.
std::int64_t walking_part(std::int64_t numel, const ExtendedDeviceProfile& profile);
// At most `wanted` elements at a time: as many as the driver can compile vectors of, in the dtype
// of every operand.
int element_lanes(const ElementArgs& args, DType compute, int wanted,
                  const ExtendedDeviceProfile& profile);
ElementShape walking_shape(const ElementArgs& args, DType compute, int vec,
                           const ExtendedDeviceProfile& profile);

}  // namespace netcl
