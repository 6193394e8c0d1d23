// softmax, log_softmax and their gradients of the CPU backend: row by row, or where rows lie next
// to each other some neighbours at a time, as an array (n, kWidth) of which whole rows are worked
// on.
#include <cmath>

#include "ops/softmax/host_rows.h"
#include "ops/softmax/softmax.h"

namespace netcl {
namespace {

constexpr std::int64_t kWidth = 64;  // neighbours taken together

bool is_log(SoftmaxKind kind) {
  return kind == SoftmaxKind::log_softmax || kind == SoftmaxKind::log_softmax_backward;
}

template <class V>
void forward_row(SoftmaxKind kind, std::vector<V>& row) {
  const auto n = length_of(row);
  if (!is_log(kind)) {
    const V sum = row_math::functions<V>().exponentials(
        row.data(), n, row_math::functions<V>().largest(row.data(), n));
    return row_math::functions<V>().move(row.data(), n, 0, 1 / sum);
  }
  const RowSums<V> sums(row);
  row_math::functions<V>().move(row.data(), n, -sums.top, 1);
  row_math::functions<V>().move(row.data(), n, -std::log(sums.sum), 1);
}

// y in `row`, which becomes dx.
template <class V>
void backward_row(SoftmaxKind kind, std::vector<V>& row, const std::vector<V>& dy) {
  const auto n = length_of(row);
  if (!is_log(kind))
    row_math::functions<V>().softmax_gradient(
        row.data(), dy.data(), n, row_math::functions<V>().dot(row.data(), dy.data(), n));
  else
    row_math::functions<V>().log_softmax_gradient(row.data(), dy.data(), n,
                                                  row_math::functions<V>().sum(dy.data(), n));
}

// kWidth neighbouring rows; all arrays (n, kWidth).
template <class V>
void forward_columns(SoftmaxKind kind, std::int64_t n, std::vector<V>& x, std::vector<V>& e) {
  const auto& math = row_math::functions<V>();
  V top[kWidth], sum[kWidth] = {};
  std::copy_n(x.data(), kWidth, top);
  for (std::int64_t i = 1; i < n; ++i) math.raise(top, x.data() + i * kWidth, kWidth);
  for (V& value : top) value = -value;
  for (std::int64_t i = 0; i < n; ++i) math.add(x.data() + i * kWidth, top, kWidth);
  auto& terms = is_log(kind) ? e : x;
  if (is_log(kind)) std::copy(x.begin(), x.end(), e.begin());
  math.exponentials(terms.data(), n * kWidth, 0);
  for (std::int64_t i = 0; i < n; ++i) math.add(sum, terms.data() + i * kWidth, kWidth);
  for (V& value : sum) value = is_log(kind) ? -std::log(value) : 1 / value;
  for (std::int64_t i = 0; i < n; ++i)
    (is_log(kind) ? math.add : math.multiply)(x.data() + i * kWidth, sum, kWidth);
}

// y in `x`, which becomes dx.
template <class V>
void backward_columns(SoftmaxKind kind, std::int64_t n, std::vector<V>& x, std::vector<V>& dy) {
  const auto& math = row_math::functions<V>();
  V sum[kWidth] = {}, term[kWidth];
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(dy.data() + i * kWidth, kWidth, term);
    if (!is_log(kind)) math.multiply(term, x.data() + i * kWidth, kWidth);
    math.add(sum, term, kWidth);
  }
  for (V& value : sum) value = -value;
  if (is_log(kind)) math.exponentials(x.data(), n * kWidth, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    V *y = x.data() + i * kWidth, *g = dy.data() + i * kWidth;
    if (is_log(kind)) {
      math.multiply(y, sum, kWidth);
      math.add(y, g, kWidth);
    } else {
      math.add(g, sum, kWidth);
      math.multiply(y, g, kWidth);
    }
  }
}

template <class T, class V>
void load_columns(const T* from, std::int64_t n, std::int64_t step, std::int64_t count,
                  std::vector<V>& to) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t c = 0; c < kWidth; ++c)
      to[static_cast<std::size_t>(i * kWidth + c)] =
          c < count ? static_cast<V>(from[i * step + c]) : V(0);
}

template <class T>
void columns(SoftmaxKind kind, const RowPlan& plan, const OpCall& call) {
  using V = arithmetic_t<T>;
  const auto strips = (plan.inner + kWidth - 1) / kWidth;
  const auto grain = std::max<std::int64_t>((1 << 13) / (plan.n * kWidth), 1);
  parallel_for(plan.outer * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    auto &x = scratch_row<V>(plan.n * kWidth), &other = scratch_row<V, 1>(plan.n * kWidth);
    for (auto id = begin; id < end; ++id) {
      const auto first = id % strips * kWidth, count = std::min(kWidth, plan.inner - first);
      const auto start = id / strips * plan.n * plan.inner + first;
      load_columns(input_data<T>(call, 0) + start, plan.n, plan.inner, count, x);
      if (call.has(1)) {
        load_columns(input_data<T>(call, 1) + start, plan.n, plan.inner, count, other);
        backward_columns(kind, plan.n, x, other);
      } else {
        forward_columns(kind, plan.n, x, other);
      }
      T* to = output_data<T>(call, 0) + start;
      for (std::int64_t i = 0; i < plan.n; ++i)
        for (std::int64_t c = 0; c < count; ++c)
          to[i * plan.inner + c] = convert_element<T>(x[static_cast<std::size_t>(i * kWidth + c)]);
    }
  });
}

}  // namespace

void host_softmax(SoftmaxKind kind, const RowPlan& plan, const OpCall& call) {
  constexpr std::int64_t kLongest = 4096;  // whose neighbours fit into a cache
  visit_floating(call.dtype(), [&]<class T>(T) {
    using V = arithmetic_t<T>;
    if (4 * plan.inner >= kWidth && plan.n > 0 && plan.n <= kLongest)
      return columns<T>(kind, plan, call);
    for_rows(plan, [&](std::int64_t, std::int64_t start) {
      auto& row = scratch_row<V>(plan.n);
      load_row(input_data<T>(call, 0) + start, plan.inner, row);
      if (call.has(1)) {
        auto& dy = scratch_row<V, 1>(plan.n);
        load_row(input_data<T>(call, 1) + start, plan.inner, dy);
        backward_row(kind, row, dy);
      } else {
        forward_row(kind, row);
      }
      store_row(row, output_data<T>(call, 0) + start, plan.inner);
    });
  });
}

}  // namespace netcl
