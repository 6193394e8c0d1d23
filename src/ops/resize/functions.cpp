// The public functions of resizing and padding.
#include "base/check.h"
#include "netcl/ops.h"
#include "ops/dispatch.h"

namespace netcl::ops {

Tensor pad(const Tensor& x, const std::vector<Pair>& padding, double value) {
  std::vector<std::int64_t> flat;
  for (const auto& [before, after] : padding) flat.insert(flat.end(), {before, after});
  return apply("pad", {x}, {{"padding", flat}, {"value", value}});
}

Tensor upsample_nearest(const Tensor& x, Pair size) {
  return apply("upsample_nearest", {x}, {{"size", std::vector<std::int64_t>{size[0], size[1]}}});
}

Tensor upsample_bilinear(const Tensor& x, Pair size, bool align_corners) {
  return apply(
      "upsample_bilinear", {x},
      {{"size", std::vector<std::int64_t>{size[0], size[1]}}, {"align_corners", align_corners}});
}

}  // namespace netcl::ops
