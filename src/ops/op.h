// An op is declared once, as an OpDef: what it computes (infer, reference), how each backend
// computes it (host, variants), its gradient and its samples. Dispatch, the self-test, tuning, the
// op table and the gradients are all driven from this declaration. An OpDef owns nothing of OpenCL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netcl/kernel_selector.h"
#include "netcl/tensor.h"
#include "netcl/tunables.h"
#include "ops/attributes.h"

namespace netcl {

struct OpDef;
class ElementFunction;  // ops/element_function.h

// Shape and dtype of a tensor; of an optional input that was left out, `present` is false.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::float32;
  bool present = true;
};

// What an op is asked for, without the values.
struct OpSpec {
  const OpDef& op;
  std::vector<TensorSpec> inputs;
  const Attributes& attributes;

  const Shape& shape(std::size_t input) const { return inputs[input].shape; }
  DType dtype(std::size_t input = 0) const { return inputs[input].dtype; }
  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].present; }
};

// One call under way. Inputs are contiguous unless the op takes views; outputs are allocated and
// contiguous (unless the op takes views), and share no memory with the inputs (but see OpDef).
struct OpCall {
  const OpDef& op;
  Queue queue;
  std::vector<Tensor> inputs;  // an optional one that was left out is an empty Tensor
  const Attributes& attributes;
  std::vector<Tensor> outputs;

  bool has(std::size_t input) const {
    return input < inputs.size() && static_cast<bool>(inputs[input]);
  }
  DType dtype() const { return inputs[0].dtype(); }
};

// An array of the reference: contiguous, every value a double.
struct RefArray {
  Shape shape;
  DType dtype = DType::float64;  // of the tensor that it stands for
  std::vector<double> values;
  bool present = true;
};

struct RefCall {
  const Attributes& attributes;
  const std::vector<RefArray>& inputs;
  std::vector<RefArray>& outputs;  // shaped by infer, zero-filled

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].present; }
};

// What a backward function gets: it returns one gradient per input, empty where none is wanted or
// the input has none (indices, labels).
struct OpGradient {
  const std::vector<Tensor>& inputs;
  const Attributes& attributes;
  const std::vector<Tensor>& outputs;
  const std::vector<Tensor>& grads;  // of the outputs; empty: zero
  const std::vector<bool>& wanted;   // per input
  // The gradients are to be differentiated themselves: they must be written in ops.
  bool differentiable = false;

  bool wants(std::size_t input) const { return input < wanted.size() && wanted[input]; }
  const Tensor& dy() const { return grads[0]; }
};

// Which tensors of a call its backward reads. Of the others it may look at shape, dtype and queue.
struct SavedTensors {
  std::uint32_t inputs = ~0u, outputs = ~0u;  // bits

  static std::function<SavedTensors(const std::vector<bool>&, const Attributes&)> always(
      std::uint32_t inputs, std::uint32_t outputs) {
    return [=](const std::vector<bool>&, const Attributes&) {
      return SavedTensors{inputs, outputs};
    };
  }
  bool input(std::size_t i) const { return i >= 32 || (inputs >> i & 1) != 0; }
  bool output(std::size_t i) const { return i >= 32 || (outputs >> i & 1) != 0; }
};

// The search space of a variant for one call.
struct VariantSpace {
  std::vector<Tunable> tunables;
  Parameters defaults;
  // Why a combination is impossible on this device; "" when it is possible. May be empty.
  std::function<std::string(const Parameters&)> declines;
  std::vector<std::size_t> sizes;  // describe the problem; near ones share a result
};

// How a variant runs: what the selector's rule configured and what tuning found.
struct VariantRun {
  const KernelConfig& config;
  const Parameters& parameters;

  std::int64_t operator[](const char* name) const { return parameters.at(name); }
};

// One way to compute an op on an OpenCL device.
struct OpVariant {
  const char* name;       // "matmul.tiled"
  const char* kernel;     // what the selector calls it: "MATMUL_TILED"; "" without rules
  const char* path = "";  // of its .cl file
  // Why it cannot compute this call; "" when it can. Null: it can compute everything.
  std::function<std::string(const OpCall&, const ExtendedDeviceProfile&)> declines = nullptr;
  std::function<void(const OpCall&, const VariantRun&)> run;
  std::function<VariantSpace(const OpCall&, const ExtendedDeviceProfile&, const KernelConfig&)>
      space = nullptr;  // null: nothing to tune
};

// ---- samples

enum class Fill {
  uniform,   // in [low, high)
  integers,  // low ... high, both included
  distinct,  // a shuffled sequence over [low, high]: no two equal
  special,   // NaN, infinities, zeros of both signs, subnormal, largest, and ordinary values
  values,    // as given
};

struct SampleInput {
  Shape shape;
  Fill fill = Fill::uniform;
  double low = -1, high = 1;
  std::optional<DType> dtype = {};  // the sample's own where not given
  std::vector<double> values = {};
  bool present = true;
};

struct OpSample {
  std::string id;  // "8x64x56x56"; unique in its op
  std::vector<SampleInput> inputs;
  Attributes attributes = {};
  bool gradient = true;            // differentiable at these values
  std::vector<DType> dtypes = {};  // of the op where empty
};

// |y - reference| <= ulps * eps(dtype) * |reference| + terms * eps(accumulator).
struct Tolerance {
  double ulps = 2;
  double terms = 0;
};

struct OpDef {
  std::string name;
  std::string summary;        // one line for people
  std::vector<DType> dtypes;  // of its main input

  // Validates and gives the outputs. Throws ShapeError, DtypeError, ArgumentError.
  std::function<std::vector<TensorSpec>(const OpSpec&)> infer;
  // Plain loops over doubles: the oracle of everything else.
  std::function<void(RefCall&)> reference;
  // The CPU backend.
  std::function<void(const OpCall&)> host = nullptr;
  // An op whose result is a view of its first input has this in the place of host and variants.
  std::function<Tensor(const Tensor&, const Attributes&)> view = nullptr;
  // Null: the op has no gradient.
  std::function<std::vector<Tensor>(const OpGradient&)> backward = nullptr;
  // What backward reads when the gradients of these inputs are wanted. Null: everything.
  std::function<SavedTensors(const std::vector<bool>& wanted, const Attributes&)> saves = nullptr;
  // What an element-wise op computes of one element, for the fusing compiler. Null: it is none.
  std::shared_ptr<const ElementFunction> element = nullptr;
  // In the order in which they are tried when the selector names none that can compute the call.
  std::vector<OpVariant> variants = {};
  // What the selector is asked; null: the first variant that can is taken.
  std::function<KernelProblem(const OpCall&)> problem = nullptr;

  std::function<std::vector<OpSample>()> samples;
  // Sizes of real work: what `netcl tune` measures. Null: nothing.
  std::function<std::vector<OpSample>()> tuning = nullptr;
  std::function<Tolerance(const OpSpec&)> tolerance = nullptr;
  std::string tolerance_reason = {};

  bool writes_views = false;     // outputs may be strided too
  bool takes_views = false;      // host and variants read strides and offsets themselves
  bool may_be_in_place = false;  // an output may be one of the inputs, element for element
};

// The floating dtypes that ops compute in, in the order of tests and tables.
inline const std::vector<DType> kFloats = {DType::float32, DType::float64, DType::float16};
inline const std::vector<DType> kFloatsAndInts = {DType::float32, DType::float64, DType::float16,
                                                  DType::int32, DType::int64};

}  // namespace netcl
