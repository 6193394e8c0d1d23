// Matrix products on the CPU backend: oneDNN for float32 (and float16, converted), loops that run
// along the rows of b for the others.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "ops/activation.h"
#include "ops/matmul/plan.h"
#include "ops/onednn.h"
#include "tensor/convert.h"

namespace netcl {
namespace {

// A factor as rows of the compute type. Copied where it is of another type or strided both ways.
template <class V>
struct Rows {
  std::vector<V> copy;
  const V* data = nullptr;
  std::int64_t row = 0, column = 0;
};

template <class V>
Rows<V> rows_of(const MatmulSide& side, std::int64_t at, std::int64_t rows, std::int64_t columns) {
  Rows<V> result;
  visit_dtype(side.tensor.dtype(), [&]<class T>(T) {
    const auto* from = static_cast<const T*>(side.tensor.host_data()) + at;
    if constexpr (std::is_same_v<T, V>) {
      if (side.row == 1 || side.column == 1) {
        result.data = from;
        result.row = side.row;
        result.column = side.column;
        return;
      }
    }
    result.copy.resize(static_cast<std::size_t>(rows * columns));
    parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          result.copy[static_cast<std::size_t>(i * columns + j)] =
              convert_element<V>(from[i * side.row + j * side.column]);
    });
    result.data = result.copy.data();
    result.row = columns;
    result.column = 1;
  });
  return result;
}

// BLAS wants strides of at least the length of a row, also where there is one row only.
onednn::Factor factor_of(const Rows<float>& rows, std::int64_t count, std::int64_t length) {
  const bool transposed = rows.column != 1 || (rows.row == 1 && count > 1);
  const auto stride = transposed ? std::max(rows.column, count) : std::max(rows.row, length);
  return {rows.data, transposed, stride};
}

bool is_blas(const Rows<float>& rows, std::int64_t count, std::int64_t length) {
  if (rows.column == 1) return rows.row >= length || count <= 1;
  return rows.row == 1 && (rows.column >= count || length <= 1);
}

// Where the sums go: into y itself where it can hold them, else into memory of their own.
template <class V>
struct Sums {
  std::vector<V> own;
  V* data;
  std::int64_t row;

  Sums(const MatmulPlan& plan, std::int64_t at) {
    const bool in_place = plan.dtype() == dtype_of_type<V>::value && plan.y.column == 1 &&
                          (plan.y.row >= plan.N || plan.M <= 1);
    if (!in_place) own.resize(static_cast<std::size_t>(plan.M * plan.N));
    data = in_place ? static_cast<V*>(plan.y.tensor.host_data()) + at : own.data();
    row = in_place ? std::max(plan.y.row, plan.N) : plan.N;
  }
};

template <class V>
void multiply(const MatmulPlan& plan, const Rows<V>& a, const Rows<V>& b, const Sums<V>& y) {
  if constexpr (std::is_same_v<V, float>) {
    if (plan.K > 0 && is_blas(a, plan.M, plan.K) && is_blas(b, plan.K, plan.N) &&
        onednn::sgemm(plan.M, plan.N, plan.K, factor_of(a, plan.M, plan.K),
                      factor_of(b, plan.K, plan.N), y.data, y.row))
      return;
  }
  const auto grain =
      std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(1, plan.N * plan.K));
  parallel_for(plan.M, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      V* row = y.data + i * y.row;
      std::fill_n(row, plan.N, V{0});
      for (std::int64_t k = 0; k < plan.K; ++k) {
        const V value = a.data[i * a.row + k * a.column];
        const V* from = b.data + k * b.row;
        if (b.column == 1)
          for (std::int64_t j = 0; j < plan.N; ++j) row[j] += value * from[j];
        else
          for (std::int64_t j = 0; j < plan.N; ++j) row[j] += value * from[j * b.column];
      }
    }
  });
}

template <class V>
void finish(const MatmulPlan& plan, const Sums<V>& sums, const Tensor& residual, std::int64_t at) {
  if (sums.own.empty() && !plan.bias && !residual && plan.activation == 0) return;
  visit_dtype(plan.dtype(), [&]<class T>(T) {
    auto* y = static_cast<T*>(plan.y.tensor.host_data()) + at;
    const auto* bias = plan.bias ? static_cast<const T*>(plan.bias.host_data()) : nullptr;
    const auto* added = residual ? static_cast<const T*>(residual.host_data()) + at : nullptr;
    parallel_for(plan.M, std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(plan.N, 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     for (std::int64_t j = 0; j < plan.N; ++j) {
                       V value = sums.data[i * sums.row + j];
                       if (bias != nullptr) value += convert_element<V>(bias[j]);
                       const auto place = i * plan.y.row + j * plan.y.column;
                       if (added != nullptr) value += convert_element<V>(added[place]);
                       y[place] = convert_element<T>(activate(plan.activation, value));
                     }
                 });
  });
}

template <class V>
void run(const MatmulPlan& plan) {
  const auto residual = plan.dense_residual();
  for (std::int64_t outer = 0; outer < plan.outer; ++outer)
    for (std::int64_t inner = 0; inner < plan.inner; ++inner) {
      const auto at = [&](const MatmulSide& side) {
        return outer * side.outer + inner * side.inner;
      };
      const auto a = rows_of<V>(plan.a, at(plan.a), plan.M, plan.K);
      const auto b = rows_of<V>(plan.b, at(plan.b), plan.K, plan.N);
      const Sums<V> sums(plan, at(plan.y));
      multiply(plan, a, b, sums);
      finish(plan, sums, residual, at(plan.y));
    }
}

}  // namespace

void host_matmul(const MatmulPlan& plan) {
  switch (compute_dtype(plan.dtype())) {
    case DType::float64:
      return run<double>(plan);
    case DType::int32:
      return run<std::int32_t>(plan);
    case DType::int64:
      return run<std::int64_t>(plan);
    default:
      return run<float>(plan);
  }
}

}  // namespace netcl
