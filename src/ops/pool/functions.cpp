// The public functions of pooling.
#include "netcl/ops.h"
#include "ops/dispatch.h"

namespace netcl::ops {
namespace {

std::vector<std::int64_t> list(Pair pair) { return {pair[0], pair[1]}; }

Attributes windows(Pair window, const PoolOptions& options) {
  const Pair stride = {options.stride[0] == 0 ? window[0] : options.stride[0],
                       options.stride[1] == 0 ? window[1] : options.stride[1]};
  return {{"window", list(window)}, {"stride", list(stride)}, {"padding", list(options.padding)}};
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair window, const PoolOptions& options) {
  return apply("max_pool2d", {x}, windows(window, options));
}

Tensor avg_pool2d(const Tensor& x, Pair window, const PoolOptions& options) {
  auto attributes = windows(window, options);
  attributes.set("count_padding", options.count_padding);
  return apply("avg_pool2d", {x}, attributes);
}

Tensor adaptive_avg_pool2d(const Tensor& x, Pair size) {
  return apply("adaptive_avg_pool2d", {x}, {{"size", list(size)}});
}

Tensor adaptive_max_pool2d(const Tensor& x, Pair size) {
  return apply("adaptive_max_pool2d", {x}, {{"size", list(size)}});
}

}  // namespace netcl::ops
