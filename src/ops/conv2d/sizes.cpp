#include "ops/conv2d/sizes.h"

#include <limits>

#include "base/check.h"

namespace netcl::conv {
namespace {

using Pair = std::array<std::int64_t, 2>;

Pair checked_pair(const char* op, const Attributes& attributes, const char* name,
                  std::int64_t lowest) {
  const auto& values = attributes.integers(name);
  check<ArgumentError>(values.size() == 2, "[{}] {} must have two values: {}", op, name,
                       values.size());
  for (const auto value : values)
    check<ArgumentError>(value >= lowest, "[{}] {} must be at least {}: ({}, {})", op, name, lowest,
                         values[0], values[1]);
  return {values[0], values[1]};
}

// Kernels count along one axis in 32 bits, padding included.
void check_small(const char* op, const char* what, std::int64_t value) {
  check<ShapeError>(value <= std::numeric_limits<std::int32_t>::max() / 2,
                    "[{}] {} must be below 2^30: {}", op, what, value);
}

// The padded axis is at most this; saturates instead of overflowing.
std::int64_t padded(std::int64_t size, std::int64_t padding) {
  constexpr auto kFar = std::int64_t{1} << 40;
  return std::min(size, kFar) + 2 * std::min(padding, kFar);
}

std::int64_t reach(std::int64_t taps, std::int64_t dilation) {
  constexpr auto kFar = std::int64_t{1} << 24;
  if (taps > kFar || dilation > kFar) return taps > 1 ? std::int64_t{1} << 48 : 1;
  return dilation * (taps - 1) + 1;
}

void check_axis(const char* op, const char* axis, std::int64_t size, std::int64_t taps,
                std::int64_t padding, std::int64_t dilation, std::int64_t stride) {
  check<ShapeError>(taps >= 1, "[{}] the filter must have at least one tap: {} is {}", op, axis,
                    taps);
  check_small(op, "the padded image", padded(size, padding));
  check_small(op, "the stride", stride);
  check<ShapeError>(reach(taps, dilation) <= padded(size, padding),
                    "[{}] the filter must not be larger than the padded image: {} {} (dilation {}) "
                    "on {} with padding {}",
                    op, axis, taps, dilation, size, padding);
}

// Between the input's and the filter's channels.
void check_channels(const char* op, const ConvSizes& s, std::int64_t channels) {
  check_small(op, "the number of channels", s.C);
  check_small(op, "the number of filters", s.K);
  check_small(op, "the batch", s.N);
  check<ShapeError>(s.C % s.groups == 0, "[{}] groups must divide the channels of x: {} of {}", op,
                    s.groups, s.C);
  check<ShapeError>(s.K % s.groups == 0, "[{}] groups must divide the filters: {} of {}", op,
                    s.groups, s.K);
  check<ShapeError>(
      channels * s.groups == s.C,
      "[{}] the filters must have as many channels as x has per group: {} for {} / {}", op,
      channels, s.C, s.groups);
}

void check_image(const char* op, const ConvSizes& s) {
  check_axis(op, "height", s.H, s.R, s.padding_h, s.dilation_h, s.stride_h);
  check_axis(op, "width", s.W, s.S, s.padding_w, s.dilation_w, s.stride_w);
}

Pair sizes_attribute(const char* op, const Attributes& attributes, const char* name) {
  return checked_pair(op, attributes, name, 0);
}

}  // namespace

ConvGeometry ConvSizes::geometry() const {
  const std::int64_t all[] = {N,         C,          H,          W,        K,        R,
                              S,         P,          Q,          stride_h, stride_w, padding_h,
                              padding_w, dilation_h, dilation_w, groups};
  ConvGeometry geometry;
  for (std::size_t i = 0; i < geometry.values.size(); ++i)
    geometry.values[i] = static_cast<std::int32_t>(all[i]);
  return geometry;
}

std::int64_t conv_output(std::int64_t size, std::int64_t taps, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation) {
  const auto span = size + 2 * padding - dilation * (taps - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

ConvSizes read_attributes(const char* op, const Attributes& attributes) {
  ConvSizes s;
  const auto stride = checked_pair(op, attributes, "stride", 1);
  const auto padding = checked_pair(op, attributes, "padding", 0);
  const auto dilation = checked_pair(op, attributes, "dilation", 1);
  s.stride_h = stride[0], s.stride_w = stride[1];
  s.padding_h = padding[0], s.padding_w = padding[1];
  s.dilation_h = dilation[0], s.dilation_w = dilation[1];
  s.groups = attributes.integer("groups");
  check<ArgumentError>(s.groups >= 1, "[{}] groups must be at least 1: {}", op, s.groups);
  return s;
}

void check_dtypes(const OpSpec& spec, std::initializer_list<const char*> names) {
  const auto dtype = spec.dtype();
  const bool known = std::find(kFloats.begin(), kFloats.end(), dtype) != kFloats.end();
  check<DtypeError>(known, "[{}] the dtype must be float32, float64 or float16: {}", spec.op.name,
                    name_of(dtype));
  for (std::size_t i = 1; i < names.size(); ++i)
    if (spec.has(i))
      check<DtypeError>(spec.dtype(i) == dtype, "[{}] {} and {} must have one dtype: {} and {}",
                        spec.op.name, names.begin()[0], names.begin()[i], name_of(dtype),
                        name_of(spec.dtype(i)));
}

void check_rank4(const char* op, const char* name, const Shape& shape) {
  check<ShapeError>(shape.rank() == 4, "[{}] {} must have 4 axes: {}", op, name, shape.to_string());
}

void check_bias(const OpSpec& spec, std::size_t input, std::int64_t channels) {
  if (!spec.has(input)) return;
  const auto& shape = spec.shape(input);
  check<ShapeError>(shape.rank() == 1 && shape[0] == channels,
                    "[{}] the bias must have one value per output channel, ({},): {}", spec.op.name,
                    channels, shape.to_string());
}

ConvSizes forward_sizes(const char* op, const Shape& x, const Shape& w,
                        const Attributes& attributes) {
  check_rank4(op, "x", x);
  check_rank4(op, "w", w);
  auto s = read_attributes(op, attributes);
  s.N = x[0], s.C = x[1], s.H = x[2], s.W = x[3];
  s.K = w[0], s.R = w[2], s.S = w[3];
  check_channels(op, s, w[1]);
  check_image(op, s);
  s.P = conv_output(s.H, s.R, s.stride_h, s.padding_h, s.dilation_h);
  s.Q = conv_output(s.W, s.S, s.stride_w, s.padding_w, s.dilation_w);
  return s;
}

ConvSizes data_sizes(const char* op, const Shape& dy, const Shape& w,
                     const Attributes& attributes) {
  check_rank4(op, "dy", dy);
  check_rank4(op, "w", w);
  auto s = read_attributes(op, attributes);
  const auto size = sizes_attribute(op, attributes, "size");
  s.N = dy[0], s.K = dy[1], s.P = dy[2], s.Q = dy[3];
  s.H = size[0], s.W = size[1], s.R = w[2], s.S = w[3];
  s.C = checked_multiply(w[1], s.groups, "channels");
  check<ShapeError>(w[0] == s.K, "[{}] w must have a filter for every channel of dy: {} for {}", op,
                    w[0], s.K);
  check_channels(op, s, w[1]);
  check_image(op, s);
  const auto P = conv_output(s.H, s.R, s.stride_h, s.padding_h, s.dilation_h);
  const auto Q = conv_output(s.W, s.S, s.stride_w, s.padding_w, s.dilation_w);
  check<ShapeError>(s.P <= P && s.Q <= Q,
                    "[{}] dy must not be larger than what the size gives: {}x{} for {}x{}", op, s.P,
                    s.Q, P, Q);
  return s;
}

ConvSizes weights_sizes(const char* op, const Shape& x, const Shape& dy,
                        const Attributes& attributes) {
  check_rank4(op, "x", x);
  check_rank4(op, "dy", dy);
  auto s = read_attributes(op, attributes);
  const auto filter = sizes_attribute(op, attributes, "filter");
  s.N = x[0], s.C = x[1], s.H = x[2], s.W = x[3];
  s.K = dy[1], s.P = dy[2], s.Q = dy[3], s.R = filter[0], s.S = filter[1];
  check<ShapeError>(dy[0] == s.N, "[{}] x and dy must have one batch: {} and {}", op, s.N, dy[0]);
  check_channels(op, s, s.C / s.groups);
  check_image(op, s);
  const auto P = conv_output(s.H, s.R, s.stride_h, s.padding_h, s.dilation_h);
  const auto Q = conv_output(s.W, s.S, s.stride_w, s.padding_w, s.dilation_w);
  check<ShapeError>(s.P <= P && s.Q <= Q,
                    "[{}] dy must not be larger than what x and the filter give: {}x{} for {}x{}",
                    op, s.P, s.Q, P, Q);
  return s;
}

Attributes shared_attributes(const Attributes& attributes) {
  return {{"stride", attributes.integers("stride")},
          {"padding", attributes.integers("padding")},
          {"dilation", attributes.integers("dilation")},
          {"groups", attributes.integer("groups")}};
}

std::vector<std::int64_t> pair_of(ops::Pair pair) { return {pair[0], pair[1]}; }

}  // namespace netcl::conv
