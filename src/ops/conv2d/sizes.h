// The sizes and attributes of a 2-D convolution, read and checked once for all of its ops.
#pragma once

#include <array>

#include "netcl/ops.h"
#include "ops/op.h"

namespace netcl::conv {

// What kernels get as an int16; the order is that of GEOMETRY in geometry.cl.
struct alignas(64) ConvGeometry {
  std::array<std::int32_t, 16> values{};
};

// x (N, C, H, W), w (K, C / groups, R, S), y (N, K, P, Q).
struct ConvSizes {
  std::int64_t N = 0, C = 0, H = 0, W = 0, K = 0, R = 1, S = 1, P = 0, Q = 0;
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0, dilation_h = 1,
               dilation_w = 1, groups = 1;

  std::int64_t group_channels() const { return C / groups; }
  std::int64_t group_filters() const { return K / groups; }
  std::int64_t taps() const { return group_channels() * R * S; }  // terms of one result
  std::int64_t pixels() const { return P * Q; }
  bool is_strided() const { return stride_h != 1 || stride_w != 1; }
  bool is_dilated() const { return dilation_h != 1 || dilation_w != 1; }
  bool is_padded() const { return padding_h != 0 || padding_w != 0; }
  bool is_pointwise() const { return R == 1 && S == 1; }
  Shape x_shape() const { return {N, C, H, W}; }
  Shape w_shape() const { return {K, group_channels(), R, S}; }
  Shape y_shape() const { return {N, K, P, Q}; }
  ConvGeometry geometry() const;
};

// floor((size + 2 padding - dilation (taps - 1) - 1) / stride) + 1, or 0 where nothing fits.
std::int64_t conv_output(std::int64_t size, std::int64_t taps, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation);

// stride, padding, dilation and groups of `attributes`, checked.
ConvSizes read_attributes(const char* op, const Attributes& attributes);
// One dtype, floating; `names` are those of the inputs in order.
void check_dtypes(const OpSpec& spec, std::initializer_list<const char*> names);
void check_rank4(const char* op, const char* name, const Shape& shape);
void check_bias(const OpSpec& spec, std::size_t input, std::int64_t channels);

// Of conv2d's inputs x, w (shapes and attributes), with everything checked.
ConvSizes forward_sizes(const char* op, const Shape& x, const Shape& w,
                        const Attributes& attributes);
// Of y's side: dy (N, K, P, Q), w (K, C / groups, R, S) and the attribute "size", H and W.
ConvSizes data_sizes(const char* op, const Shape& dy, const Shape& w, const Attributes& attributes);
// x (N, C, H, W), dy (N, K, P, Q) and the attribute "filter", R and S.
ConvSizes weights_sizes(const char* op, const Shape& x, const Shape& dy,
                        const Attributes& attributes);

// The attributes that all ops of the family share.
Attributes shared_attributes(const Attributes& attributes);
std::vector<std::int64_t> pair_of(ops::Pair pair);

}  // namespace netcl::conv
