// Axis merging.
#include "tensor/strided.h"

namespace netcl {

std::vector<LoopAxis> plan_loops(const Shape& shape, const Strides& to, const Strides& from) {
  std::vector<LoopAxis> axes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto size = shape.sizes()[i];
    if (size == 1) continue;
    const LoopAxis axis{size, to[i], from[i]};
    // The outer axis steps over exactly one run of this one: together they are one longer run.
    if (!axes.empty() && axes.back().to == size * axis.to && axes.back().from == size * axis.from)
      axes.back() = {axes.back().size * size, axis.to, axis.from};
    else
      axes.push_back(axis);
  }
  return axes;
}

}  // namespace netcl
