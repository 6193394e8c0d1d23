#include "jit/rules.h"

#include <algorithm>

#include "base/check.h"
#include "netcl/capabilities.h"
#include "ops/element_function.h"
#include "ops/elementwise/broadcast.h"
#include "ops/expression/expression_op.h"
#include "ops/kernels.h"

namespace netcl::fusion {
namespace {

bool is_fusable(DType dtype) { return is_floating(dtype) && dtype != DType::bfloat16; }
bool is_value(DType dtype) { return is_fusable(dtype) || dtype == DType::boolean; }

bool any_of_dtype(const OpCall& call, const TensorSpec& spec, DType dtype) {
  return spec.dtype == dtype ||
         std::any_of(call.inputs.begin(), call.inputs.end(),
                     [&](const Tensor& input) { return input && input.dtype() == dtype; });
}

bool has_nothing(const OpCall& call, const TensorSpec& spec) {
  return spec.shape.numel() == 0 ||
         std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const Tensor& input) { return input && input.numel() == 0; });
}

bool is_fused_cast(DType from, DType to) {
  if (from == DType::float64 && to == DType::float16) return false;  // would be rounded twice
  return is_fusable(to) && is_value(from);
}

bool is_reduction(std::string_view name) {
  return name == "sum" || name == "mean" || name == "max" || name == "min";
}

bool is_product(std::string_view name) {
  return name == "matmul" || name == "linear" || name == "conv2d";
}

}  // namespace

std::optional<NodeKind> kind_of(const OpCall& call, const std::vector<TensorSpec>& specs) {
  if (specs.size() != 1 || has_nothing(call, specs[0])) return {};
  const auto& spec = specs[0];
  if (!call.queue.is_cpu() && any_of_dtype(call, spec, DType::float64) &&
      !device_profile(call.queue).has_fp64)
    return {};
  const auto& op = call.op;
  if (op.element != nullptr) {
    if (std::max(call.inputs.size(), op.element->scalars.size()) > kMaxElementInputs) return {};
    const bool values =
        is_value(spec.dtype) &&
        std::all_of(call.inputs.begin(), call.inputs.end(),
                    [](const Tensor& input) { return !input || is_value(input.dtype()); });
    return values ? std::optional(NodeKind::element) : std::nullopt;
  }
  if (op.name == "cast")
    return is_fused_cast(call.dtype(), spec.dtype) ? std::optional(NodeKind::cast) : std::nullopt;
  if (is_reduction(op.name)) {
    const auto producer = pending_node(call.inputs[0]);
    const bool of_chain =
        is_fusable(spec.dtype) && producer != nullptr && is_elementwise(*producer);
    return of_chain ? std::optional(NodeKind::reduction) : std::nullopt;
  }
  if (is_product(op.name) && is_fusable(spec.dtype)) return NodeKind::product;
  return {};
}

DType compute_of(const Node& node) {
  if (node.kind == NodeKind::cast) {
    const auto from = node.inputs[0].dtype();
    const bool wide = from == DType::float64 || node.spec.dtype == DType::float64;
    return wide ? DType::float64 : DType::float32;
  }
  // A predicate computes in the type of its operands; of truth values alone in any.
  DType computed = node.spec.dtype;
  if (computed == DType::boolean)
    for (const auto& input : node.inputs)
      if (input) computed = input.dtype();
  return computed == DType::boolean ? computed : compute_dtype(computed);
}

std::optional<DType> common_compute(DType a, DType b) {
  if (a == b || b == DType::boolean) return a;
  return a == DType::boolean ? std::optional(b) : std::nullopt;
}

double number_of(const Node& node, std::size_t input) {
  return node.attributes.number(scalar_input(input));
}

LinkChoice link_of(const Node& producer, const Node& consumer, const Tensor& input) {
  if (!is_elementwise(producer))
    return {Link::none, producer.kind == NodeKind::reduction ? "a reduction is read by elements"
                                                             : "a product is read by elements"};
  if (!(producer.queue == consumer.queue)) return {Link::none, "another queue"};
  // Values in a kernel are those of its compute type: what a store would round has to be stored.
  const auto stored = producer.spec.dtype;
  if (producer.kind == NodeKind::cast && stored != DType::boolean && stored != compute_of(producer))
    return {Link::none, "a narrowing cast rounds when it is stored"};
  if (consumer.kind == NodeKind::cast && is_floating(stored) && consumer.spec.dtype != stored &&
      stored != compute_of(consumer))
    return {Link::none, "a widening cast reads rounded values"};
  if (!common_compute(compute_of(producer), compute_of(consumer)))
    return {Link::none, "another type of arithmetic"};
  if (input.offset() != 0 || input.numel() != producer.spec.shape.numel() || !input.is_contiguous())
    return {Link::none, "read through a view that reorders, repeats or skips elements"};
  if (input.numel() != consumer.spec.shape.numel() && consumer.kind != NodeKind::reduction)
    return {Link::none, "read broadcast to a larger shape"};
  return {loop_of(input.shape()) == loop_of(producer.spec.shape) ? Link::same : Link::reshaped, ""};
}

std::vector<std::int64_t> loop_of(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(sizes),
               [](std::int64_t size) { return size != 1; });
  return sizes;
}

Strides loop_strides(const Tensor& input, const Shape& shape) {
  const auto all = broadcast_strides(input.shape(), input.strides(), shape);
  Strides strides;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) strides.push_back(all[static_cast<std::size_t>(axis)]);
  return strides;
}

bool is_flat(const Tensor& input, const Shape& shape) {
  return input.numel() == 1 || (input.numel() == shape.numel() && input.is_contiguous());
}

}  // namespace netcl::fusion
