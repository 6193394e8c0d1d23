// Resizing on the CPU backend.
#include <utility>

#include "base/parallel.h"
#include "ops/resize/upsample.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

template <class V>
struct Blend {
  std::int64_t low, high;
  V rest;
  Blend(const ResizeAxis& axis, std::int64_t o) {
    const auto at = axis.scaled(o);
    low = at / axis.divisor();
    high = axis.bilinear ? std::min(low + 1, axis.from - 1) : low;
    rest = axis.bilinear ? V(at - low * axis.divisor()) / V(axis.divisor()) : V(0);
  }
};

// A row of x with the width of the result.
template <class T, class V>
void widen(const T* x, const std::vector<Blend<V>>& columns, bool bilinear, V* to) {
  if (!bilinear) {
    for (const auto& column : columns) *to++ = convert_element<V>(x[column.low]);
    return;
  }
  for (const auto& column : columns)
    *to++ = convert_element<V>(x[column.low]) * (V(1) - column.rest) +
            convert_element<V>(x[column.high]) * column.rest;
}

// Rows of x are widened once for all rows that read them: `rows` [begin, end) of all planes.
template <class T, class V>
void resize_rows(const T* x, const ResizedImages& images, std::int64_t begin, std::int64_t end,
                 const std::vector<Blend<V>>& columns, T* y) {
  const auto& [planes, rows, across] = images;
  const auto width = static_cast<std::size_t>(across.to);
  std::vector<V> wide[2] = {std::vector<V>(width), std::vector<V>(width)};
  std::int64_t known[2] = {-1, -1};
  const auto widened = [&](std::int64_t row) {
    const auto place = static_cast<std::size_t>(row & 1);
    if (std::exchange(known[place], row) != row)
      widen<T, V>(x + row * across.from, columns, rows.bilinear, wide[place].data());
    return wide[place].data();
  };
  for (auto row = begin; row < end; ++row) {
    const auto plane = row / rows.to * rows.from;
    const Blend<V> blend(rows, row % rows.to);
    const V* top = widened(plane + blend.low);
    T* to = y + row * across.to;
    if (!rows.bilinear) {
      for (std::size_t i = 0; i < width; ++i) to[i] = convert_element<T>(top[i]);
      continue;
    }
    const V* bottom = widened(plane + blend.high);
    const V kept = V(1) - blend.rest, rest = blend.rest;
    for (std::size_t i = 0; i < width; ++i)
      to[i] = convert_element<T>(top[i] * kept + bottom[i] * rest);
  }
}

// The outputs that read each input along an axis, and how much of it is in them.
template <class V>
struct Readers {
  std::vector<std::int64_t> first, count;
  std::vector<V> weights;          // one input after the other
  std::vector<std::size_t> begin;  // of an input's weights

  explicit Readers(const ResizeAxis& axis) {
    for (std::int64_t i = 0; i < axis.from; ++i) {
      begin.push_back(weights.size());
      first.push_back(0), count.push_back(0);
      for (auto o = axis.first(i); o <= axis.last(i); ++o) {
        const V weight = axis.weight<V>(o, i);
        // Not a zero: an infinite gradient of what is not read must not give NaN.
        if (weight == V(0)) continue;
        if (count.back()++ == 0) first.back() = o;
        weights.push_back(weight);
      }
    }
  }
};

// The gradient: rows that read one are added up before their sum is narrowed.
template <class T, class V>
void gather_rows(const T* dy, const ResizedImages& images, std::int64_t begin, std::int64_t end,
                 const Readers<V>& down, const Readers<V>& across, T* dx) {
  const auto W = images.columns.from, OW = images.columns.to;
  std::vector<V> sum(static_cast<std::size_t>(OW));
  for (auto row = begin; row < end; ++row) {
    const auto h = static_cast<std::size_t>(row % images.rows.from);
    const T* plane = dy + row / images.rows.from * images.rows.to * OW;
    std::fill(sum.begin(), sum.end(), V(0));
    for (std::int64_t k = 0; k < down.count[h]; ++k) {
      const V weight = down.weights[down.begin[h] + static_cast<std::size_t>(k)];
      const T* from = plane + (down.first[h] + k) * OW;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * convert_element<V>(from[i]);
    }
    const V* weights = across.weights.data();
    for (std::int64_t w = 0; w < W; ++w) {
      const auto at = static_cast<std::size_t>(w);
      const V* from = sum.data() + across.first[at];
      V total = 0;
      for (std::int64_t k = 0; k < across.count[at]; ++k) total += *weights++ * from[k];
      dx[row * W + w] = convert_element<T>(total);
    }
  }
}

}  // namespace

void host_upsample(const OpCall& call, bool bilinear, bool is_backward) {
  const auto &in = call.inputs[0], &out = call.outputs[0];
  const auto images = ResizedImages::of(call, bilinear, is_backward);
  const auto rows = out.shape()[2], width = out.shape()[3];
  visit_dtype(in.dtype(), [&]<class T>(T) {
    using V = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto* from = static_cast<const T*>(in.host_data());
    auto* to = static_cast<T*>(out.host_data());
    const auto grain = 1 + 8192 / width;
    if (is_backward) {
      const Readers<V> down(images.rows), across(images.columns);
      return parallel_for(images.planes * rows, grain, [&](std::int64_t begin, std::int64_t end) {
        gather_rows<T, V>(from, images, begin, end, down, across, to);
      });
    }
    std::vector<Blend<V>> columns;
    for (std::int64_t ow = 0; ow < images.columns.to; ++ow)
      columns.emplace_back(images.columns, ow);
    parallel_for(images.planes * rows, grain, [&](std::int64_t begin, std::int64_t end) {
      resize_rows<T, V>(from, images, begin, end, columns, to);
    });
  });
}

}  // namespace netcl
