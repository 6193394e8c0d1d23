// The ops. Every function checks its arguments and throws ShapeError, DtypeError, DeviceError or
// ArgumentError with the rule and the actual values; results are new tensors on the inputs' queue.
// `netcl ops` lists them with their dtypes and kernels.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl/kernel_selector.h"
#include "netcl/tensor.h"

namespace netcl::ops {

using Axes = std::vector<std::int64_t>;

// ---- element-wise. Operands broadcast as in NumPy; a number takes the place of any one tensor.
// Mixed dtypes meet in the wider one, floating before integer.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(tensor) {}  // NOLINT: x + 1 and x + y read alike
  Operand(double number) : is_number_(true), number_(number) {}  // NOLINT
  bool is_number() const { return is_number_; }
  const Tensor& tensor() const { return tensor_; }
  double number() const { return number_; }

 private:
  Tensor tensor_;
  bool is_number_ = false;
  double number_ = 0;
};

Tensor add(const Operand& a, const Operand& b);
Tensor sub(const Operand& a, const Operand& b);
Tensor mul(const Operand& a, const Operand& b);
Tensor div(const Operand& a, const Operand& b);  // of integers in floating point
Tensor pow(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);  // NaN where one is NaN
Tensor minimum(const Operand& a, const Operand& b);
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor prelu(const Tensor& x, const Operand& slope);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor gelu(const Tensor& x, bool tanh_form = false);
Tensor silu(const Tensor& x);
Tensor swish(const Tensor& x);  // another name of silu
Tensor elu(const Tensor& x, double alpha = 1);
Tensor softplus(const Tensor& x);
Tensor mish(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x);
Tensor hard_swish(const Tensor& x);
Tensor hard_tanh(const Tensor& x, double min = -1, double max = 1);
Tensor clamp(const Tensor& x, double min, double max);
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
Tensor eq(const Operand& a, const Operand& b);
Tensor ne(const Operand& a, const Operand& b);
Tensor lt(const Operand& a, const Operand& b);
Tensor le(const Operand& a, const Operand& b);
Tensor gt(const Operand& a, const Operand& b);
Tensor ge(const Operand& a, const Operand& b);
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_xor(const Operand& a, const Operand& b);
Tensor logical_not(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor cast(const Tensor& x, DType dtype);  // saturates; NaN to an integer is 0

// In place: the result has to fit the shape and dtype of `x`, which is returned.
const Tensor& add_(const Tensor& x, const Operand& other);
const Tensor& sub_(const Tensor& x, const Operand& other);
const Tensor& mul_(const Tensor& x, const Operand& other);
const Tensor& div_(const Tensor& x, const Operand& other);
const Tensor& relu_(const Tensor& x);
const Tensor& clamp_(const Tensor& x, double min, double max);
const Tensor& fill_(const Tensor& x, double value);

// An expression over v0 and v1 with the macros of PRIMITIVE_PREAMBLE, OpenCL's functions, + - * /,
// comparisons and ?: ("MUL(ADD(v0, v1), 2.0f)"). ArgumentError points at what it cannot read.
Tensor elementwise_binary(const Tensor& a, const Tensor& b, const std::string& expression);

// Zero with probability p, else x / (1 - p). Element i of a seed is the same on every device.
Tensor dropout(const Tensor& x, double p, std::uint64_t seed);

// ---- matrix products
// The activations that products and convolutions can apply to their result while it is at hand.
enum class Activation : std::uint8_t { none, relu, gelu, silu, sigmoid, tanh };

// (..., M, K) x (..., K, N); leading axes broadcast; a vector is a row on the left, a column on the
// right, and its axis is dropped. Transposed views cost nothing.
Tensor matmul(const Tensor& a, const Tensor& b);
// activation(x w^T + b + residual): x (..., in), w (out, in), b (out) or empty; the residual has
// the result's shape (..., out) and dtype or is empty, and may be x itself.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {},
              Activation activation = Activation::none, const Tensor& residual = {});
// x + b along one axis: of the channels for NCHW (4-D), else the last.
Tensor bias_add(const Tensor& x, const Tensor& b);

// A matrix product compiled for one problem: (M, K) x (K, N) on `queue`.
class MatmulKernel {
 public:
  Tensor operator()(const Tensor& a, const Tensor& b) const;
  const KernelConfig& config() const { return config_; }
  const std::string& variant() const { return variant_; }  // "matmul.tiled"

 private:
  friend MatmulKernel build_matmul_kernel(const Queue& queue, std::int64_t M, std::int64_t N,
                                          std::int64_t K, DType dtype, std::string_view variant);
  Queue queue_;
  std::int64_t M_ = 0, N_ = 0, K_ = 0;
  DType dtype_ = DType::float32;
  KernelConfig config_;
  std::string variant_;
};
// The variant is the selector's unless one is named ("MATMUL_TILED", "matmul.tiled").
MatmulKernel build_matmul_kernel(const Queue& queue, std::int64_t M, std::int64_t N, std::int64_t K,
                                 DType dtype = DType::float32, std::string_view variant = "");

// softmax(q k^T * scale + mask) v over the last two axes of q (..., L, E), k (..., S, E),
// v (..., S, Ev); a block of rows at a time, never the whole score matrix. `mask`: bool (true takes
// part) or floating (added), broadcast to (..., L, S); causal: position i sees 0 ... i only. scale
// 0: 1 / sqrt(E).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask = {}, bool causal = false, double scale = 0);

// ---- convolution and images: x (N, C, H, W)
using Pair = std::array<std::int64_t, 2>;  // height, width

struct Conv2dOptions {
  Pair stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
  Activation activation = Activation::none;
};
// activation(conv(x, w) + b + residual): w (K, C / groups, R, S), b (K) or empty; the residual has
// the result's shape (N, K, P, Q) and dtype or is empty, and may be x itself (the identity of a
// residual block).
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b = {},
              const Conv2dOptions& options = {}, const Tensor& residual = {});
// The gradient of conv2d with respect to x, as an op of its own; w (C, K / groups, R, S).
struct ConvTranspose2dOptions {
  Pair stride{1, 1}, padding{0, 0}, output_padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& b = {},
                        const ConvTranspose2dOptions& options = {});

struct PoolOptions {
  Pair stride{0, 0};  // 0: the window
  Pair padding{0, 0};
  bool count_padding = true;  // of averages: divide by the whole window
};
Tensor max_pool2d(const Tensor& x, Pair window, const PoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, Pair window, const PoolOptions& options = {});
Tensor adaptive_avg_pool2d(const Tensor& x, Pair size);
Tensor adaptive_max_pool2d(const Tensor& x, Pair size);
Tensor upsample_nearest(const Tensor& x, Pair size);
Tensor upsample_bilinear(const Tensor& x, Pair size, bool align_corners = false);
// (before, after) per axis, first axis first.
Tensor pad(const Tensor& x, const std::vector<Pair>& padding, double value = 0);

// ---- reductions. No axes: all of them. Sums of integers are int64.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
// correction 1 divides by n - 1.
Tensor var(const Tensor& x, const Axes& axes = {}, bool keepdim = false, double correction = 1);
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
// The first of equal values; NaN counts as the largest (smallest); int64.
Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keepdim = false);
Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keepdim = false);
Tensor reduce_sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);  // sum

Tensor softmax(const Tensor& x, std::int64_t axis = -1);
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
Tensor cumsum(const Tensor& x, std::int64_t axis = -1);
// Values and int64 indices, largest first (or smallest); of equal values the first comes first.
std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1,
                               bool largest = true);

enum class Reduction : std::uint8_t { none, mean, sum };
// logits (N, classes), labels (N) int32 or int64; rows whose label is ignore_index do not count.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     Reduction reduction = Reduction::mean, double label_smoothing = 0,
                     std::int64_t ignore_index = -100);
// The same with a probability per class, (N, classes).
Tensor cross_entropy_probabilities(const Tensor& logits, const Tensor& probabilities,
                                   Reduction reduction = Reduction::mean);

// ---- normalisation
struct BatchNormResult {
  Tensor y, mean, inverse_deviation;  // of the batch
};
// x (N, C, ...), scale and shift (C).
BatchNormResult batch_norm_train(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                 double eps = 1e-5);
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                  const Tensor& variance, double eps = 1e-5, bool fuse_relu = false);
// Over the last axes, as many as scale has. scale and shift may be empty.
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps = 1e-5);
Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps = 1e-6);
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& scale, const Tensor& shift,
                  double eps = 1e-5);

// ---- shapes and indexing. The first six are views where that is possible.
Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes);
Tensor transpose(const Tensor& x, std::int64_t a = -2, std::int64_t b = -1);
Tensor permute(const Tensor& x, const Axes& axes);
Tensor expand(const Tensor& x, const Shape& shape);
Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length);
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes,
                          std::int64_t axis = 0);
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
// Indices are int32 or int64; one out of range is an ArgumentError that names it.
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices);
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& indices);
// x with `source` added at the places that gather would read; equal places add up.
Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& indices, const Tensor& source);
Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& indices, const Tensor& source);
Tensor embedding(const Tensor& indices, const Tensor& table);  // rows of the table
Tensor one_hot(const Tensor& indices, std::int64_t classes, DType dtype = DType::float32);
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

}  // namespace netcl::ops

namespace netcl {

// The shortcuts.
using ops::bias_add;
using ops::build_matmul_kernel;
using ops::conv2d;
using ops::elementwise_binary;
using ops::matmul;
using ops::reduce_sum;
using ops::relu;
using ops::softmax;

Tensor operator+(const ops::Operand& a, const ops::Operand& b);
Tensor operator-(const ops::Operand& a, const ops::Operand& b);
Tensor operator*(const ops::Operand& a, const ops::Operand& b);
Tensor operator/(const ops::Operand& a, const ops::Operand& b);
Tensor operator-(const Tensor& x);

}  // namespace netcl
