// Loops over rows on the host: a row is loaded into an array of the compute type, worked on,
// stored.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/parallel.h"
#include "ops/softmax/row_math.h"
#include "ops/softmax/rows.h"
#include "tensor/convert.h"

namespace netcl {

// Calls f(T{}) for the floating dtypes.
template <class F>
void visit_floating(DType dtype, F&& f) {
  if (dtype == DType::float64) return f(double{});
  if (dtype == DType::float16) return f(float16_t{});
  return f(float{});
}

template <class T>
const T* input_data(const OpCall& call, std::size_t i) {
  return static_cast<const T*>(call.inputs[i].host_data());
}
template <class T>
T* output_data(const OpCall& call, std::size_t i) {
  return static_cast<T*>(call.outputs[i].host_data());
}

template <class T, class V>
void load_row(const T* from, std::int64_t step, std::vector<V>& row) {
  if constexpr (std::is_same_v<T, V>)
    if (step == 1) return void(std::copy_n(from, row.size(), row.begin()));
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<V>(from[static_cast<std::int64_t>(i) * step]);
}
template <class T, class V>
void store_row(const std::vector<V>& row, T* to, std::int64_t step) {
  if constexpr (std::is_same_v<T, V>)
    if (step == 1) return void(std::copy(row.begin(), row.end(), to));
  for (std::size_t i = 0; i < row.size(); ++i)
    to[static_cast<std::int64_t>(i) * step] = convert_element<T>(row[i]);
}

// f(row, position of its first element) for all rows, on several threads.
template <class F>
void for_rows(const RowPlan& plan, F&& f) {
  const auto grain = std::max<std::int64_t>((1 << 13) / std::max<std::int64_t>(plan.n, 1), 1);
  parallel_for(plan.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      f(row, row / plan.inner * plan.n * plan.inner + row % plan.inner);
  });
}

// Sums of f(i) with several accumulators: fast, and errors grow slowly.
template <class V, class F>
V sum_over(std::int64_t n, F&& f) {
  constexpr std::int64_t kLanes = 16;
  V lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += f(i + l);
  for (; i < n; ++i) lanes[0] += f(i);
  for (std::int64_t part = kLanes / 2; part > 0; part /= 2)
    for (std::int64_t l = 0; l < part; ++l) lanes[l] += lanes[l + part];
  return lanes[0];
}

// Memory for a row, kept for the next one on this thread. Several of one owner have numbers.
template <class V, int number = 0>
std::vector<V>& scratch_row(std::int64_t n) {
  thread_local std::vector<V> row;
  row.resize(static_cast<std::size_t>(n));
  return row;
}

template <class V>
std::int64_t length_of(const std::vector<V>& row) {
  return static_cast<std::int64_t>(row.size());
}

// The largest element and the sum of exp(x - it).
template <class V>
struct RowSums {
  V top, sum;
  explicit RowSums(const std::vector<V>& row)
      : top(row_math::functions<V>().largest(row.data(), length_of(row))),
        sum(row_math::functions<V>().sum_exp(row.data(), length_of(row), top)) {}
};

}  // namespace netcl
