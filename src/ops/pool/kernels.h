// What the OpenCL variants of pooling share.
#pragma once

#include <array>

#include "ops/kernels.h"
#include "ops/pool/geometry.h"

namespace netcl {

// The pairs that a kernel takes, kept until it is launched.
template <class P>
struct KernelPairs {
  struct alignas(2 * sizeof(P)) Pair {
    P height, width;
  };
  std::array<Pair, 5> pairs;

  explicit KernelPairs(const PoolGeometry& g) {
    const auto pair = [&](std::int64_t PoolAxis::*field) {
      return Pair{static_cast<P>(g.rows.*field), static_cast<P>(g.columns.*field)};
    };
    pairs = {pair(&PoolAxis::in), pair(&PoolAxis::out), pair(&PoolAxis::window),
             pair(&PoolAxis::stride), pair(&PoolAxis::padding)};
  }
  // Those that a kernel asks for: 0 in, 1 out, 2 window, 3 stride, 4 padding.
  void add_to(OpArgs& args, std::initializer_list<std::size_t> wanted) const {
    for (const auto i : wanted) args.by_value(&pairs[i], sizeof pairs[i]);
  }
};

// Whether everything that the kernels compute fits an int.
inline bool fits_int(const PoolGeometry& g) {
  const auto axis = [](const PoolAxis& a) {
    return (a.in + 1) * (a.out + 1) + a.in + a.out <= INT32_MAX &&
           a.in + a.window + a.stride + 2 * a.padding <= INT32_MAX;
  };
  return axis(g.rows) && axis(g.columns) &&
         g.planes * std::max(g.rows.in * g.columns.in, g.rows.out * g.columns.out) <= INT32_MAX;
}

using GeometryOf = PoolGeometry (*)(const char* op, const Shape& shape, const Attributes&);
// For CPUs, by rows.
OpVariant pool_rows_variant(const std::string& op, bool max, bool is_backward, GeometryOf geometry);

}  // namespace netcl
