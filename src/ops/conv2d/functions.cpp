#include "netcl/ops.h"
#include "ops/conv2d/sizes.h"
#include "ops/dispatch.h"

namespace netcl::ops {

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2dOptions& options,
              const Tensor& residual) {
  return apply("conv2d", {x, w, b, residual},
               {{"stride", conv::pair_of(options.stride)},
                {"padding", conv::pair_of(options.padding)},
                {"dilation", conv::pair_of(options.dilation)},
                {"groups", options.groups},
                {"activation", static_cast<std::int64_t>(options.activation)}});
}

}  // namespace netcl::ops
