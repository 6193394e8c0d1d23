// Resizing on the CPU backend.
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

// `columns` are those of all outputs of a row, found once for all rows.
template <class T, class V>
void resize_row(const T* plane, const ResizedImages& images, const std::vector<Blend<V>>& columns,
                std::int64_t oh, T* y) {
  const Blend<V> row(images.rows, oh);
  const auto W = images.columns.from;
  const auto load = [&](std::int64_t h, std::int64_t w) {
    return convert_element<V>(plane[h * W + w]);
  };
  for (std::int64_t ow = 0; ow < images.columns.to; ++ow) {
    const auto& column = columns[static_cast<std::size_t>(ow)];
    if (!images.rows.bilinear) {
      y[ow] = plane[row.low * W + column.low];
      continue;
    }
    const V left = V(1) - column.rest;
    const V top = load(row.low, column.low) * left + load(row.low, column.high) * column.rest;
    const V bottom = load(row.high, column.low) * left + load(row.high, column.high) * column.rest;
    y[ow] = convert_element<T>(top * (V(1) - row.rest) + bottom * row.rest);
  }
}

template <class T, class V>
void gather_row(const T* plane, const ResizedImages& images, std::int64_t h, T* dx) {
  const auto& [planes, rows, columns] = images;
  for (std::int64_t w = 0; w < columns.from; ++w) {
    V sum = 0;
    for (auto oh = rows.first(h); oh <= rows.last(h); ++oh) {
      const V wh = rows.weight<V>(oh, h);
      if (wh == V(0)) continue;
      for (auto ow = columns.first(w); ow <= columns.last(w); ++ow)
        if (const V ww = columns.weight<V>(ow, w); ww != V(0))
          sum += wh * ww * convert_element<V>(plane[oh * columns.to + ow]);
    }
    dx[w] = convert_element<T>(sum);
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
    std::vector<Blend<V>> columns;
    for (std::int64_t ow = 0; ow < images.columns.to; ++ow)
      columns.emplace_back(images.columns, ow);
    parallel_for(images.planes * rows, 1 + 8192 / width, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row) {
        const auto* plane = from + row / rows * in.shape()[2] * in.shape()[3];
        if (is_backward)
          gather_row<T, V>(plane, images, row % rows, to + row * width);
        else
          resize_row<T, V>(plane, images, columns, row % rows, to + row * width);
      }
    });
  });
}

}  // namespace netcl
