// A matrix times a vector: y[i] = sum over k of matrix[i, k] * vector[k], for either side (the host
// swaps a and b). Defines: VEC, ALONG_K (matrix and vector lie contiguously along k), WG.
//   gemv        one work-item per result (ALONG_K: vectors of VEC along k; else scalar steps)
//   gemv_rows   ALONG_K: one work-group of WG items (a power of two) per result
//   gemv_wide   a work-item owns VEC neighbouring results, the matrix contiguous across them
//   gemv_strip  likewise NV vectors of results, for CPUs: whole lines of every row
//   gemv_block  likewise `width` results, up to WIDEST: so long a part of some rows at a time that
//               memory is read in order
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

// coalescing(gemv): on GPUs without ALONG_K: neighbouring items read neighbouring elements of the
// matrix where rows lie so, and the same elements of the vector.
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
    // Four sums: one would wait for itself.
    ACCV wide = (ACCV)(0), wide1 = wide, wide2 = wide, wide3 = wide;
    for (; k + 4 * VEC <= stop; k += 4 * VEC) {
      wide = MULTIPLY_ADD(LOADV(matrix, k), LOADV(vector, k), wide);
      wide1 = MULTIPLY_ADD(LOADV(matrix, k + VEC), LOADV(vector, k + VEC), wide1);
      wide2 = MULTIPLY_ADD(LOADV(matrix, k + 2 * VEC), LOADV(vector, k + 2 * VEC), wide2);
      wide3 = MULTIPLY_ADD(LOADV(matrix, k + 3 * VEC), LOADV(vector, k + 3 * VEC), wide3);
    }
    wide += wide1 + wide2 + wide3;
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

#if defined(WG)
// coalescing(gemv_rows): a group strides through its row by its size, in vectors: neighbours load
// neighbouring vectors of the matrix and of the vector.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void gemv_rows(
    __global const T* matrix, __global const T* vector, __global T* y,
    __global const T* bias RESIDUAL_PARAMETER, long8 at, long4 size, long4 sm, long4 sv, long4 sy,
    long bias_step) {
  __local ACC shared[WG];
  const long i = (long)get_group_id(0), vectors = size.s1 / VEC;
  const int item = get_local_id(0);
  TO_BATCH((long)get_group_id(2));
  matrix += i * sm.s0;
  ACCV wide = (ACCV)(0);
  for (long v = item; v < vectors; v += WG) wide += LOADV(matrix, v * VEC) * LOADV(vector, v * VEC);
  ACC lanes[VEC];
  STORE_LANES(wide, lanes);
  ACC part = 0;
  for (int lane = 0; lane < VEC; ++lane) part += lanes[lane];
  for (long k = vectors * VEC + item; k < size.s1; k += WG)
    part += LOAD_T(matrix, k) * LOAD_T(vector, k);
  shared[item] = part;
  for (int half_of = WG / 2; half_of > 0; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_of) shared[item] += shared[item + half_of];
  }
  if (item == 0) STORE_Y(i, shared[0]);
}
#endif

// occupancy(gemv_wide): vectors of doubles take 72 registers.
// coalescing(gemv_wide): neighbouring items load neighbouring vectors.
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

#if defined(NV) || defined(WIDEST)
#include "ops/lanes.cl"
#endif

#if defined(NV)
#define ROWS_AHEAD 4

// Results [first, first + lanes), one vector of them.
static inline void narrow_strip(__global const T* matrix, __global const T* vector, long terms,
                                long k_step, long vector_step, long lanes, ACC* to) {
  ACCV total = (ACCV)(0);
  if (lanes >= VEC) {
    for (long k = 0; k < terms; ++k)
      total =
          MULTIPLY_ADD(LOADV(matrix, k * k_step), (ACCV)(LOAD_T(vector, k * vector_step)), total);
    STORE_LANES(total, to);
    return;
  }
  for (long lane = 0; lane < lanes; ++lane) to[lane] = 0;
  for (long k = 0; k < terms; ++k)
    for (long lane = 0; lane < lanes; ++lane)
      to[lane] += LOAD_T(matrix, k * k_step + lane) * LOAD_T(vector, k * vector_step);
}

// device(gemv_strip): CPU
__kernel void gemv_strip(__global const T* matrix, __global const T* vector, __global T* y,
                         __global const T* bias RESIDUAL_PARAMETER, long8 at, long4 size, long4 sm,
                         long4 sv, long4 sy, long bias_step) {
  const long first = (long)get_global_id(0) * NV * VEC;
  if (first >= size.s0) return;
  // The last strip begins earlier and keeps what is its own, so that it is as wide as the others.
  const long from_result = max(min(first, size.s0 - NV * VEC), 0L);
  const long count = min((long)NV * VEC, size.s0 - from_result);
  TO_BATCH((long)get_global_id(2));
  matrix += from_result;
  ACC results[NV * VEC];
  for (int i = 0; i < NV * VEC; ++i) results[i] = (ACC)0;
  for (long start = 0; start < size.s1; start += BLOCK) {
    const long terms = min((long)BLOCK, size.s1 - start);
    __global const T* from = matrix + start * sm.s1;
    __global const T* factors = vector + start * sv.s0;
    ACC part[NV * VEC];
    if (count == NV * VEC) {
      ACCV sum[NV];
#pragma unroll
      for (int j = 0; j < NV; ++j) sum[j] = (ACCV)(0);
      for (long k = 0; k < terms; ++k) {
        const ACCV factor = (ACCV)(LOAD_T(factors, k * sv.s0));
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          if (j * VEC * sizeof(T) % 64 == 0) FETCH(from + ROWS_AHEAD * sm.s1 + j * VEC);
          sum[j] = MULTIPLY_ADD(LOADV(from, j * VEC), factor, sum[j]);
        }
        from += sm.s1;
      }
#pragma unroll
      for (int j = 0; j < NV; ++j) STORE_LANES(sum[j], part + j * VEC);
    } else {
      for (long j = 0; j < count; j += VEC)
        narrow_strip(from + j, factors, terms, sm.s1, sv.s0, count - j, part + j);
    }
    for (long i = 0; i < count; ++i) results[i] += part[i];
  }
  for (long i = first - from_result; i < count; ++i) STORE_Y(from_result + i, results[i]);
}
#endif

#if defined(WIDEST)
#define ROWS_TOGETHER 8

// device(gemv_block): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemv_block(
    __global const T* matrix, __global const T* vector, __global T* y,
    __global const T* bias RESIDUAL_PARAMETER, long8 at, long4 size, long4 sm, long4 sv, long4 sy,
    long bias_step, int width) {
  __local ACC sums[WIDEST];
  const long first = (long)get_global_id(0) * width;
  const int count = (int)min((long)width, size.s0 - first);
  TO_BATCH((long)get_global_id(2));
  matrix += first;
  for (int j = 0; j < count; j += VEC) STORE_LOCAL((ACCV)(0), sums + j);
  long k = 0;
  for (; k + ROWS_TOGETHER <= size.s1; k += ROWS_TOGETHER) {
    ACC factor[ROWS_TOGETHER];
#pragma unroll
    for (int i = 0; i < ROWS_TOGETHER; ++i) factor[i] = LOAD_T(vector, (k + i) * sv.s0);
    __global const T* from = matrix + k * sm.s1;
    for (int j = 0; j < count; j += VEC) {
      // The last vector overlaps the one before: its sums are its own.
      __global const T* row = from + min(j, count - VEC);
      ACCV part = LOADV(row, 0) * factor[0];
#pragma unroll
      for (int i = 1; i < ROWS_TOGETHER; ++i)
        part = MULTIPLY_ADD(LOADV(row, i * sm.s1), (ACCV)(factor[i]), part);
      STORE_LOCAL(LOAD_LOCAL(sums + j) + part, sums + j);
    }
  }
  for (; k < size.s1; ++k) {
    const ACC factor = LOAD_T(vector, k * sv.s0);
    for (int j = 0; j < count; j += VEC)
      STORE_LOCAL(MULTIPLY_ADD(LOADV(matrix, k * sm.s1 + min(j, count - VEC)), (ACCV)(factor),
                               LOAD_LOCAL(sums + j)),
                  sums + j);
  }
  for (int i = 0; i < count; ++i) {
    const int own = count - i > VEC || count % VEC == 0 ? i : i + (VEC - count % VEC);
    STORE_Y(first + i, sums[own]);
  }
}
#endif
