// Which calls wait, and which of them may share a kernel.
#pragma once

#include <optional>

#include "jit/node.h"

namespace netcl::fusion {

inline constexpr std::size_t kMaxElementInputs = 64;  // and numbers, each

// What a call would be as a node; nothing when it is to be run at once.
std::optional<NodeKind> kind_of(const OpCall& call, const std::vector<TensorSpec>& specs);

inline bool is_elementwise(const Node& node) {
  return node.kind == NodeKind::element || node.kind == NodeKind::cast;
}

// The type in which an element-wise node computes; boolean where any will do.
DType compute_of(const Node& node);
// The two in one kernel; nothing when they do not go together.
std::optional<DType> common_compute(DType a, DType b);

// The number in the place of an input that the call left out.
double number_of(const Node& node, std::size_t input);

// How an input reads the result of a pending node.
enum class Link : std::uint8_t {
  none,      // from memory: the result has to be stored first
  same,      // element for element
  reshaped,  // in the same order, seen in another shape
};
struct LinkChoice {
  Link link = Link::none;
  const char* reason = "";  // why it is none
};
LinkChoice link_of(const Node& producer, const Node& consumer, const Tensor& input);

// The sizes other than 1: shapes that agree in them are one loop.
std::vector<std::int64_t> loop_of(const Shape& shape);
// The strides of an input along the loop of its node's result.
Strides loop_strides(const Tensor& input, const Shape& shape);
// Whether its elements follow each other, or it is one element for all.
bool is_flat(const Tensor& input, const Shape& shape);

}  // namespace netcl::fusion
