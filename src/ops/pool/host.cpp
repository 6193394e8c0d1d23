// Pooling on the CPU backend, a plane at a time.
#include "base/parallel.h"
#include "ops/pool/geometry.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

// Where the windows lie along one axis, computed once for all planes.
struct Spans {
  std::vector<std::int64_t> begin, end;
  explicit Spans(const PoolAxis& axis) {
    for (std::int64_t o = 0; o < axis.out; ++o) {
      begin.push_back(axis.begin(o));
      end.push_back(axis.end(o));
    }
  }
};

struct Windows {
  Spans rows, columns;
  std::vector<double> divisors;  // of averages
  explicit Windows(const PoolGeometry& g, bool max) : rows(g.rows), columns(g.columns) {
    if (max) return;
    for (std::int64_t oh = 0; oh < g.rows.out; ++oh)
      for (std::int64_t ow = 0; ow < g.columns.out; ++ow)
        divisors.push_back(static_cast<double>(g.divisor(oh, ow)));
  }
};

// Calls f(output, first row, its end, first column, its end) for every window of a plane.
template <class F>
void for_windows(const Windows& windows, F&& f) {
  const auto &rows = windows.rows, &columns = windows.columns;
  std::size_t o = 0;
  for (std::size_t oh = 0; oh < rows.begin.size(); ++oh)
    for (std::size_t ow = 0; ow < columns.begin.size(); ++ow, ++o)
      f(o, rows.begin[oh], rows.end[oh], columns.begin[ow], columns.end[ow]);
}

template <class T, class V>
void max_plane(const T* x, T* y, std::int32_t* indices, std::int64_t W, const Windows& windows) {
  for_windows(windows, [&](auto o, auto h0, auto h1, auto w0, auto w1) {
    auto best = h0 * W + w0;
    V largest = convert_element<V>(x[best]);
    for (auto h = h0; h < h1; ++h)
      for (auto w = w0; w < w1; ++w) {
        const V value = convert_element<V>(x[h * W + w]);
        // Without a branch, which would be as random as the picture.
        const bool better = (value > largest) | (value != value);
        largest = better ? value : largest;
        best = better ? h * W + w : best;
      }
    y[o] = x[best];
    indices[o] = static_cast<std::int32_t>(best);
  });
}

template <class T, class V>
void avg_plane(const T* x, T* y, std::int64_t W, const Windows& windows) {
  for_windows(windows, [&](auto o, auto h0, auto h1, auto w0, auto w1) {
    V sum = 0;
    for (auto h = h0; h < h1; ++h)
      for (auto w = w0; w < w1; ++w) sum += convert_element<V>(x[h * W + w]);
    y[o] = convert_element<T>(sum / static_cast<V>(windows.divisors[o]));
  });
}

// `sums`: the plane of dx, zero before.
template <class T, class V>
void max_backward_plane(const T* dy, const std::int32_t* indices, V* sums, std::int64_t pixels,
                        std::int64_t outputs) {
  for (std::int64_t o = 0; o < outputs; ++o)
    if (indices[o] >= 0 && indices[o] < pixels) sums[indices[o]] += convert_element<V>(dy[o]);
}

template <class T, class V>
void avg_backward_plane(const T* dy, V* sums, std::int64_t W, const Windows& windows) {
  for_windows(windows, [&](auto o, auto h0, auto h1, auto w0, auto w1) {
    const V share = convert_element<V>(dy[o]) / static_cast<V>(windows.divisors[o]);
    for (auto h = h0; h < h1; ++h)
      for (auto w = w0; w < w1; ++w) sums[h * W + w] += share;
  });
}

// f(sums) adds to a plane of zeros, which becomes dx.
template <class T, class V, class F>
void through_sums(T* dx, std::int64_t pixels, std::vector<V>& buffer, F&& f) {
  if constexpr (std::is_same_v<T, V>) {
    std::fill(dx, dx + pixels, V{0});
    f(dx);
  } else {
    buffer.assign(static_cast<std::size_t>(pixels), V{0});
    f(buffer.data());
    for (std::int64_t i = 0; i < pixels; ++i)
      dx[i] = convert_element<T>(buffer[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

void pool_host(const OpCall& call, const PoolGeometry& g, bool max, bool is_backward) {
  const auto W = g.columns.in, pixels = g.rows.in * W, outputs = g.rows.out * g.columns.out;
  const Windows windows(g, max);
  visit_dtype(call.dtype(), [&]<class T>(T) {
    using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto* from = static_cast<const T*>(call.inputs[0].host_data());
    auto* to = static_cast<T*>(call.outputs[0].host_data());
    auto* indices = !max ? nullptr
                         : static_cast<std::int32_t*>(
                               (is_backward ? call.inputs[1] : call.outputs[1]).host_data());
    const auto one_plane = [&](std::int64_t p, std::vector<V>& buffer) {
      auto* positions = max ? indices + p * outputs : nullptr;
      if (is_backward)
        through_sums<T, V>(to + p * pixels, pixels, buffer, [&](V* sums) {
          const T* dy = from + p * outputs;
          max ? max_backward_plane<T, V>(dy, positions, sums, pixels, outputs)
              : avg_backward_plane<T, V>(dy, sums, W, windows);
        });
      else if (max)
        max_plane<T, V>(from + p * pixels, to + p * outputs, positions, W, windows);
      else
        avg_plane<T, V>(from + p * pixels, to + p * outputs, W, windows);
    };
    parallel_for(g.planes, 1 + 8192 / (pixels + outputs),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<V> buffer;
                   for (auto p = begin; p < end; ++p) one_plane(p, buffer);
                 });
  });
}

}  // namespace netcl
