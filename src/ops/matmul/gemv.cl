// A matrix times a vector: y[i] = sum over k of matrix[i, k] * vector[k], for either side (the host
// swaps a and b). Defines: VEC, ALONG_K (the matrix lies contiguously along k).
//   gemv        one work-item per result (ALONG_K: vectors of VEC along k; else scalar steps)
//   gemv_wide   a work-item owns VEC neighbouring results, the matrix contiguous across them
// Sizes: long4 size: results, K, batches, inner batches; strides: matrix result, matrix k, matrix
// batches; vector k, vector batches; y result, y batches. Global size: (items, 1, batches),
// guarded.

#include "ops/conv2d/epilogue.cl"

#if HAS_BIAS
#define WITH_BIAS(sum, i) ((sum) + LOAD_T(bias, (i)*bias_step))
#else
#define WITH_BIAS(sum, i) (sum)
#endif
#define STORE_Y(i, sum) FINISH((i)*sy.s0, WITH_BIAS(sum, i))

#define TO_BATCH(z)                                       \
  {                                                       \
    const long outer = (z) / size.s3;                     \
    const long inner = (z)-outer * size.s3;               \
    matrix += at.s0 + outer * sm.s2 + inner * sm.s3;      \
    vector += at.s1 + outer * sv.s1 + inner * sv.s2;      \
    y += at.s2 + outer * sy.s1 + inner * sy.s2;           \
    bias += at.s3;                                        \
    MOVE_RESIDUAL(at.s4 + outer * sy.s1 + inner * sy.s2); \
  }

#define BLOCK 1024

__kernel void gemv(__global const T* matrix, __global const T* vector, __global T* y,
                   __global const T* bias RESIDUAL_PARAMETER, long8 at, long4 size, long4 sm,
                   long4 sv, long4 sy, long bias_step) {
  const long i = (long)get_global_id(0);
  if (i >= size.s0) return;
  TO_BATCH((long)get_global_id(2));
  matrix += i * sm.s0;
  ACC total = 0;
  for (long start = 0; start < size.s1; start += BLOCK) {
    const long stop = min(start + BLOCK, size.s1);
    long k = start;
    ACC part = 0;
#if ALONG_K
    ACCV wide = (ACCV)(0);
    for (; k + VEC <= stop; k += VEC) wide += LOADV(matrix, k) * LOADV(vector, k);
    ACC lanes[VEC];
    STORE_LANES(wide, lanes);
    for (int lane = 0; lane < VEC; ++lane) part += lanes[lane];
#endif
    for (; k < stop; ++k) part += LOAD_T(matrix, k * sm.s1) * LOAD_T(vector, k * sv.s0);
    total += part;
  }
  STORE_Y(i, total);
}

__kernel void gemv_wide(__global const T* matrix, __global const T* vector, __global T* y,
                        __global const T* bias RESIDUAL_PARAMETER, long8 at, long4 size, long4 sm,
                        long4 sv, long4 sy, long bias_step) {
  const long first = (long)get_global_id(0) * VEC;
  if (first >= size.s0) return;
  TO_BATCH((long)get_global_id(2));
  matrix += first;
  ACC lanes[VEC];
  if (first + VEC <= size.s0) {
    ACCV total = (ACCV)(0);
    for (long start = 0; start < size.s1; start += BLOCK) {
      const long stop = min(start + BLOCK, size.s1);
      ACCV part = (ACCV)(0);
      for (long k = start; k < stop; ++k)
        part += LOADV(matrix, k * sm.s1) * (ACCV)(LOAD_T(vector, k * sv.s0));
      total += part;
    }
    STORE_LANES(total, lanes);
  } else {
    for (int lane = 0; lane < VEC; ++lane) {
      lanes[lane] = 0;
      if (first + lane >= size.s0) continue;
      for (long k = 0; k < size.s1; ++k)
        lanes[lane] += LOAD_T(matrix, k * sm.s1 + lane) * LOAD_T(vector, k * sv.s0);
    }
  }
  for (int lane = 0; lane < VEC; ++lane)
    if (first + lane < size.s0) STORE_Y(first + lane, lanes[lane]);
}
