// One inner loop per pair of dtypes. Outer axes are walked one run after the other, on all cores
// where that pays; two axes that each side walks in its own order go through it in small squares.
#include "tensor/host_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/parallel.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // elements below which threads do not pay
constexpr std::int64_t kSide = 16;        // of squares: their lines stay in the first cache

template <class To, class From>
void copy_run(const LoopAxis& axis, To* to, const From* from) {
  if (axis.to == 1 && axis.from == 1) {
    if constexpr (std::is_same_v<To, From>)
      std::memcpy(to, from, static_cast<std::size_t>(axis.size) * sizeof(To));
    else
      for (std::int64_t i = 0; i < axis.size; ++i) to[i] = convert_element<To>(from[i]);
    return;
  }
  for (std::int64_t i = 0; i < axis.size; ++i)
    to[i * axis.to] = convert_element<To>(from[i * axis.from]);
}

// Both axes, in squares.
template <class To, class From>
void copy_plane(const LoopAxis& outer, const LoopAxis& inner, To* to, const From* from) {
  for (std::int64_t i = 0; i < inner.size; i += kSide) {
    const LoopAxis run{std::min(kSide, inner.size - i), inner.to, inner.from};
    for (std::int64_t j = 0; j < outer.size; ++j)
      copy_run(run, to + j * outer.to + i * inner.to, from + j * outer.from + i * inner.from);
  }
}

// Slices of at most so many rows of the last but one axis are the work of a thread at a time.
constexpr std::int64_t kRows = kSide;

template <class To, class From>
void copy_axes(const std::vector<LoopAxis>& axes, To* to, const From* from) {
  auto order = axes;
  if (order.size() < 2) order.insert(order.begin(), 2 - order.size(), {1, 0, 0});
  const auto inner = order.back();
  const auto second = order.end() - 2;
  // The source lies closer together along another axis: that one makes the squares.
  const auto closest = std::min_element(
      order.begin(), order.end() - 1,
      [](const auto& a, const auto& b) { return std::abs(a.from) < std::abs(b.from); });
  const bool squares = inner.from != 1 && std::abs(closest->from) < std::abs(inner.from);
  if (squares) std::rotate(closest, closest + 1, order.end() - 1);
  const auto outer = *second;
  const auto slice = squares ? kRows : std::max<std::int64_t>(1, kGrain / inner.size);
  const auto slices = (outer.size + slice - 1) / slice;
  std::int64_t count = slices;
  for (auto axis = order.begin(); axis != second; ++axis) count *= axis->size;
  const auto per_slice = std::min(slice, outer.size) * inner.size;
  parallel_for(count, kGrain / per_slice + 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      const auto first = k % slices * slice;
      auto rest = k / slices;
      auto to_at = first * outer.to, from_at = first * outer.from;
      for (auto axis = second; axis != order.begin();) {
        --axis;
        const auto at = rest % axis->size;
        rest /= axis->size;
        to_at += at * axis->to, from_at += at * axis->from;
      }
      const LoopAxis rows{std::min(slice, outer.size - first), outer.to, outer.from};
      if (squares)
        copy_plane(rows, inner, to + to_at, from + from_at);
      else
        for (std::int64_t j = 0; j < rows.size; ++j)
          copy_run(inner, to + to_at + j * rows.to, from + from_at + j * rows.from);
    }
  });
}

// One axis, cut for all cores.
template <class To, class From>
void copy_line(const LoopAxis& axis, To* to, const From* from) {
  parallel_for(axis.size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    copy_run({end - begin, axis.to, axis.from}, to + begin * axis.to, from + begin * axis.from);
  });
}

}  // namespace

void host_copy(const std::vector<LoopAxis>& axes, void* to, DType to_type, const void* from,
               DType from_type) {
  visit_dtype(to_type, [&]<class To>(To) {
    visit_dtype(from_type, [&]<class From>(From) {
      auto* y = static_cast<To*>(to);
      const auto* x = static_cast<const From*>(from);
      axes.size() == 1 ? copy_line(axes[0], y, x) : copy_axes(axes, y, x);
    });
  });
}

}  // namespace netcl
