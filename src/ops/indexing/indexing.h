// Ops that move elements by position: joining tensors, picking and adding by indices, triangles.
#pragma once

#include "ops/op.h"
#include "tensor/kernels.h"

namespace netcl {

OpDef concat_op();
OpDef stack_op();
OpDef index_select_op();
OpDef embedding_op();
OpDef gather_op();
OpDef index_add_op();
OpDef scatter_add_op();
OpDef one_hot_op();
OpDef triangle_op(bool lower);

// An array seen as (outer, size, inner) around one axis.
struct AxisView {
  std::int64_t outer = 1, size = 1, inner = 1;
  AxisView(const Shape& shape, std::int64_t axis) : size(shape[axis]) {
    for (std::int64_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::int64_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

inline std::int64_t axis_of(const OpSpec& spec, std::size_t input = 0) {
  return normalize_axis(spec.attributes.integer("axis"), spec.shape(input).rank(),
                        spec.op.name.c_str());
}

}  // namespace netcl
