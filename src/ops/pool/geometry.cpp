#include "ops/pool/geometry.h"

#include "base/check.h"

namespace netcl {
namespace {

void check_image(const char* op, const Shape& x) {
  if (x.rank() != 4) fail<ShapeError>("[{}] images must be (N, C, H, W): {}", op, x.to_string());
  if (x[2] == 0 || x[3] == 0)
    fail<ShapeError>("[{}] an image must have at least one pixel: {}", op, x.to_string());
  // Positions in a plane are kept as int32.
  if (x[2] > INT32_MAX / x[3])
    fail<ShapeError>("[{}] an image must have less than 2^31 pixels: {}", op, x.to_string());
}

std::int64_t entry(const char* op, const Attributes& attributes, const char* name, int axis,
                   std::int64_t least) {
  const auto& pair = attributes.integers(name);
  check<ShapeError>(pair.size() == 2 && pair[0] >= least && pair[1] >= least,
                    "[{}] the {} must be two numbers of at least {}: ({})", op, name, least,
                    join(pair, ", "));
  // So that no product of two of them can overflow.
  check<ShapeError>(std::max(pair[0], pair[1]) <= INT32_MAX,
                    "[{}] the {} must fit in 32 bits: ({})", op, name, join(pair, ", "));
  return pair[static_cast<std::size_t>(axis)];
}

PoolAxis windowed(const char* op, std::int64_t in, int axis, const Attributes& attributes) {
  PoolAxis a;
  a.in = in;
  a.window = entry(op, attributes, "window", axis, 1);
  a.stride = entry(op, attributes, "stride", axis, 1);
  a.padding = entry(op, attributes, "padding", axis, 0);
  check<ShapeError>(a.padding <= a.window / 2,
                    "[{}] the padding must be at most half of the window: {} of {}", op, a.padding,
                    a.window);
  check<ShapeError>(a.window <= a.in + 2 * a.padding,
                    "[{}] the window must not be larger than the padded image: {} of {} + 2 * {}",
                    op, a.window, a.in, a.padding);
  a.out = (a.in + 2 * a.padding - a.window) / a.stride + 1;
  return a;
}

}  // namespace

PoolGeometry pool_geometry(const char* op, const Shape& x, const Attributes& attributes) {
  check_image(op, x);
  PoolGeometry geometry;
  geometry.planes = x[0] * x[1];
  if (attributes.has("size")) {
    geometry.rows = {x[2], entry(op, attributes, "size", 0, 1)};
    geometry.columns = {x[3], entry(op, attributes, "size", 1, 1)};
    return geometry;
  }
  geometry.rows = windowed(op, x[2], 0, attributes);
  geometry.columns = windowed(op, x[3], 1, attributes);
  if (attributes.has("count_padding")) geometry.count_padding = attributes.flag("count_padding");
  return geometry;
}

PoolGeometry pool_backward_geometry(const char* op, const Shape& dy, const Attributes& attributes) {
  if (dy.rank() != 4)
    fail<ShapeError>("[{}] the gradient must be (N, C, H, W): {}", op, dy.to_string());
  const Shape x{dy[0], dy[1], entry(op, attributes, "image", 0, 1),
                entry(op, attributes, "image", 1, 1)};
  auto geometry = pool_geometry(op, x, attributes);
  if (geometry.rows.out != dy[2] || geometry.columns.out != dy[3])
    fail<ShapeError>("[{}] the gradient must be ({}, {}) for this image: {}", op, geometry.rows.out,
                     geometry.columns.out, dy.to_string());
  return geometry;
}

}  // namespace netcl
