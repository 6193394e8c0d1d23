// Loops over rows: the innermost one runs along a row of the image with a fixed tap of the filter,
// which compilers turn into vectors. Sums are kept in the arithmetic type, a plane at a time.
// float32 goes to oneDNN's convolutions, else to its matrix product, where it is installed.
#include "ops/conv2d/host.h"

#include <cmath>

#include "base/parallel.h"
#include "ops/onednn.h"
#include "tensor/convert.h"

namespace netcl::conv {
namespace {

template <class T>
const T* input(const Tensor& tensor) {
  return tensor ? static_cast<const T*>(tensor.host_data()) : nullptr;
}
template <class T>
T* output(const Tensor& tensor) {
  return static_cast<T*>(tensor.host_data());
}

template <class A>
A activated(A x, ops::Activation activation) {
  switch (activation) {
    case ops::Activation::relu:
      return x <= A{0} ? A{0} : x;
    case ops::Activation::gelu:
      return A(0.5) * x * std::erfc(-x * A(0.70710678118654752440));
    case ops::Activation::silu:
      return x / (A{1} + std::exp(-x));
    case ops::Activation::sigmoid:
      return A{1} / (A{1} + std::exp(-x));
    case ops::Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}

// Along one axis, the outputs whose input start + output * stride lies inside [0, size).
struct Range {
  std::int64_t begin, end;
};
Range inside(std::int64_t start, std::int64_t stride, std::int64_t size, std::int64_t outputs) {
  const auto begin = start >= 0 ? 0 : (-start + stride - 1) / stride;
  const auto end = start >= size ? 0 : std::min(outputs, (size - start + stride - 1) / stride);
  return {begin, std::max(begin, end)};
}

// Calls f(row of x, first column of x, row of y, columns of y) for every pair of rows that meet
// under the tap (r, s).
template <class F>
void for_tap(const ConvSizes& g, std::int64_t r, std::int64_t s, F&& f) {
  const auto h0 = r * g.dilation_h - g.padding_h, w0 = s * g.dilation_w - g.padding_w;
  const auto rows = inside(h0, g.stride_h, g.H, g.P), columns = inside(w0, g.stride_w, g.W, g.Q);
  if (columns.begin >= columns.end) return;
  for (auto p = rows.begin; p < rows.end; ++p) f(h0 + p * g.stride_h, w0, p, columns);
}

template <class T, class A>
void copy_out(const std::vector<A>& sums, T* to, A bias, const T* residual,
              ops::Activation activation) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const A value = sums[i] + bias;
    to[i] = convert_element<T>(activated(residual ? value + A(residual[i]) : value, activation));
  }
}

// One plane (n, k) of y, in `sums`.
template <class T, class A>
void forward_plane(const ConvSizes& g, const T* x, const T* w, std::int64_t n, std::int64_t k,
                   std::vector<A>& sums) {
  std::fill(sums.begin(), sums.end(), A{0});
  const auto first = k / g.group_filters() * g.group_channels();
  for (std::int64_t c = 0; c < g.group_channels(); ++c) {
    const T* plane = x + (n * g.C + first + c) * g.H * g.W;
    const T* filter = w + (k * g.group_channels() + c) * g.R * g.S;
    for (std::int64_t tap = 0; tap < g.R * g.S; ++tap) {
      const auto weight = static_cast<A>(filter[tap]);
      for_tap(g, tap / g.S, tap % g.S, [&](auto h, auto w0, auto p, Range columns) {
        const T* row = plane + h * g.W + w0;
        A* to = sums.data() + p * g.Q;
        if (g.stride_w == 1)
          for (auto q = columns.begin; q < columns.end; ++q) to[q] += weight * A(row[q]);
        else
          for (auto q = columns.begin; q < columns.end; ++q)
            to[q] += weight * A(row[q * g.stride_w]);
      });
    }
  }
}

// One plane (n, c) of dx, in `sums`.
template <class T, class A>
void data_plane(const ConvSizes& g, const T* dy, const T* w, std::int64_t n, std::int64_t c,
                std::vector<A>& sums) {
  std::fill(sums.begin(), sums.end(), A{0});
  const auto group = c / g.group_channels(), in_group = c % g.group_channels();
  for (auto k = group * g.group_filters(); k < (group + 1) * g.group_filters(); ++k) {
    const T* plane = dy + (n * g.K + k) * g.P * g.Q;
    const T* filter = w + (k * g.group_channels() + in_group) * g.R * g.S;
    for (std::int64_t tap = 0; tap < g.R * g.S; ++tap) {
      const auto weight = static_cast<A>(filter[tap]);
      for_tap(g, tap / g.S, tap % g.S, [&](auto h, auto w0, auto p, Range columns) {
        const T* row = plane + p * g.Q;
        A* to = sums.data() + h * g.W + w0;
        for (auto q = columns.begin; q < columns.end; ++q) to[q * g.stride_w] += weight * A(row[q]);
      });
    }
  }
}

// One tap of dw: rows are summed in several lanes, images for themselves.
template <class T, class A>
A tap_gradient(const ConvSizes& g, const T* x, const T* dy, std::int64_t k, std::int64_t c,
               std::int64_t tap) {
  constexpr std::int64_t kLanes = 16;
  const auto channel = k / g.group_filters() * g.group_channels() + c;
  A total = 0;
  for (std::int64_t n = 0; n < g.N; ++n) {
    const T* x_plane = x + (n * g.C + channel) * g.H * g.W;
    const T* dy_plane = dy + (n * g.K + k) * g.P * g.Q;
    A lanes[kLanes] = {};
    for_tap(g, tap / g.S, tap % g.S, [&](auto h, auto w0, auto p, Range columns) {
      const T* row = x_plane + h * g.W + w0;
      const T* dy_row = dy_plane + p * g.Q;
      auto q = columns.begin;
      if (g.stride_w == 1)
        for (; q + kLanes <= columns.end; q += kLanes)
          for (std::int64_t i = 0; i < kLanes; ++i) lanes[i] += A(row[q + i]) * A(dy_row[q + i]);
      for (; q < columns.end; ++q) lanes[q % kLanes] += A(row[q * g.stride_w]) * A(dy_row[q]);
    });
    A image = 0;
    for (const auto lane : lanes) image += lane;
    total += image;
  }
  return total;
}

// Calls f(plane, buffer) for all planes on several threads, each with a buffer of its own.
template <class A, class F>
void for_planes(std::int64_t planes, std::int64_t size, std::int64_t work, F&& f) {
  const auto grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(work, 1));
  parallel_for(planes, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<A> buffer(static_cast<std::size_t>(size));
    for (auto plane = begin; plane < end; ++plane) f(plane, buffer);
  });
}

template <class F>
void visit_floats(DType dtype, F&& f) {
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) f(T{});
  });
}

// ---- float32 by oneDNN

// False where the loops are better or oneDNN cannot do it.
bool by_onednn(const ConvSizes& g, onednn::Convolution::Pass pass, const Tensor& first,
               const Tensor& second, const Tensor& result) {
  // Below this many products, starting oneDNN costs more than they do.
  constexpr std::int64_t kFew = 20'000;
  if (result.dtype() != DType::float32) return false;
  if (g.N * g.K * g.pixels() * g.taps() < kFew) return false;  // also when there is nothing
  const onednn::Convolution what{pass,         g.N,        g.C,         g.H,         g.W,
                                 g.K,          g.R,        g.S,         g.P,         g.Q,
                                 g.stride_h,   g.stride_w, g.padding_h, g.padding_w, g.dilation_h,
                                 g.dilation_w, g.groups};
  return onednn::convolve(what, input<float>(first), input<float>(second), output<float>(result));
}

// ---- float32 by oneDNN's matrix product: w times the columns of an image

// One row of the columns, (c, r, s): the pixels that this tap sees.
void fill_column(const ConvSizes& g, const float* plane, std::int64_t tap, float* to) {
  std::fill(to, to + g.pixels(), 0.0F);
  for_tap(g, tap / g.S, tap % g.S, [&](auto h, auto w0, auto p, Range columns) {
    const float* row = plane + h * g.W + w0;
    for (auto q = columns.begin; q < columns.end; ++q) to[p * g.Q + q] = row[q * g.stride_w];
  });
}

// y without bias and activation; false where the loops are better or there is no oneDNN.
bool forward_by_products(const ConvSizes& g, const float* x, const float* w, float* y) {
  constexpr std::int64_t kThin = 4;
  if (!onednn::is_available() || g.group_filters() < kThin || g.taps() == 0) return false;
  const bool as_it_is = g.is_pointwise() && !g.is_strided() && !g.is_padded();
  std::vector<float> columns(as_it_is ? 0 : static_cast<std::size_t>(g.taps() * g.pixels()));
  for (std::int64_t i = 0; i < g.N * g.groups; ++i) {
    const float* image = x + i * g.group_channels() * g.H * g.W;
    const auto grain = std::max<std::int64_t>(1, 65536 / g.pixels());
    if (!as_it_is)
      parallel_for(g.taps(), grain, [&](std::int64_t begin, std::int64_t end) {
        for (auto row = begin; row < end; ++row)
          fill_column(g, image + row / (g.R * g.S) * g.H * g.W, row % (g.R * g.S),
                      columns.data() + row * g.pixels());
      });
    const onednn::Factor filters{w + i % g.groups * g.group_filters() * g.taps(), false, g.taps()};
    const onednn::Factor pixels{as_it_is ? image : columns.data(), false, g.pixels()};
    if (!onednn::sgemm(g.group_filters(), g.pixels(), g.taps(), filters, pixels,
                       y + i * g.group_filters() * g.pixels(), g.pixels()))
      return false;
  }
  return true;
}

void finish_planes(const ConvSizes& g, const float* bias, const float* residual, float* y,
                   ops::Activation activation) {
  if (bias == nullptr && residual == nullptr && activation == ops::Activation::none) return;
  for_planes<float>(g.N * g.K, 0, g.pixels(), [&](auto plane, auto&) {
    const float b = bias == nullptr ? 0.0F : bias[plane % g.K];
    float* to = y + plane * g.pixels();
    // The commonest ones in loops that become vectors.
    if (residual == nullptr && activation == ops::Activation::none) {
      for (std::int64_t i = 0; i < g.pixels(); ++i) to[i] += b;
      return;
    }
    if (residual == nullptr && activation == ops::Activation::relu) {
      for (std::int64_t i = 0; i < g.pixels(); ++i) {
        const float value = to[i] + b;
        to[i] = value <= 0.0F ? 0.0F : value;
      }
      return;
    }
    if (residual != nullptr) {
      const float* added = residual + plane * g.pixels();
      for (std::int64_t i = 0; i < g.pixels(); ++i)
        to[i] = activated(to[i] + b + added[i], activation);
      return;
    }
    for (std::int64_t i = 0; i < g.pixels(); ++i) to[i] = activated(to[i] + b, activation);
  });
}

}  // namespace

void host_forward(const ConvSizes& g, const Tensor& x, const Tensor& w, const Tensor& b,
                  const Tensor& residual, const Tensor& y, ops::Activation activation) {
  if (by_onednn(g, onednn::Convolution::Pass::forward, x, w, y) ||
      (x.dtype() == DType::float32 &&
       forward_by_products(g, input<float>(x), input<float>(w), output<float>(y))))
    return finish_planes(g, input<float>(b), input<float>(residual), output<float>(y), activation);
  visit_floats(x.dtype(), [&]<class T>(T) {
    using A = arithmetic_t<T>;
    const T* bias = input<T>(b);
    for_planes<A>(g.N * g.K, g.pixels(), g.pixels() * g.taps(), [&](auto plane, auto& sums) {
      const auto k = plane % g.K;
      forward_plane<T, A>(g, input<T>(x), input<T>(w), plane / g.K, k, sums);
      copy_out<T, A>(sums, output<T>(y) + plane * g.pixels(), bias ? A(bias[k]) : A{0},
                     residual ? input<T>(residual) + plane * g.pixels() : nullptr, activation);
    });
  });
}

void host_backward_data(const ConvSizes& g, const Tensor& dy, const Tensor& w, const Tensor& b,
                        const Tensor& dx) {
  if (by_onednn(g, onednn::Convolution::Pass::data, dy, w, dx)) {
    ConvSizes image;
    image.N = g.N, image.K = g.C, image.P = g.H, image.Q = g.W;
    return finish_planes(image, input<float>(b), nullptr, output<float>(dx), ops::Activation::none);
  }
  visit_floats(dy.dtype(), [&]<class T>(T) {
    using A = arithmetic_t<T>;
    const T* bias = input<T>(b);
    const auto work = g.pixels() * g.group_filters() * g.R * g.S;
    for_planes<A>(g.N * g.C, g.H * g.W, work, [&](auto plane, auto& sums) {
      const auto c = plane % g.C;
      data_plane<T, A>(g, input<T>(dy), input<T>(w), plane / g.C, c, sums);
      copy_out<T, A>(sums, output<T>(dx) + plane * g.H * g.W, bias ? A(bias[c]) : A{0}, nullptr,
                     ops::Activation::none);
    });
  });
}

void host_backward_weights(const ConvSizes& g, const Tensor& x, const Tensor& dy,
                           const Tensor& dw) {
  if (by_onednn(g, onednn::Convolution::Pass::weights, x, dy, dw)) return;
  visit_floats(x.dtype(), [&]<class T>(T) {
    using A = arithmetic_t<T>;
    const auto taps = g.R * g.S;
    for_planes<A>(g.K * g.group_channels(), 0, g.N * g.pixels() * taps, [&](auto plane, auto&) {
      for (std::int64_t tap = 0; tap < taps; ++tap)
        output<T>(dw)[plane * taps + tap] = convert_element<T>(
            tap_gradient<T, A>(g, input<T>(x), input<T>(dy), plane / g.group_channels(),
                               plane % g.group_channels(), tap));
    });
  });
}

}  // namespace netcl::conv
