// For devices without real local memory: a work-item owns WORK_M rows of four neighbouring results
// and reads b in vectors of four; the cache does what tiles would. b must be contiguous along its
// rows and N a multiple of 4. Global size: (N / 4, M / WORK_M rounded up, batches), guarded.
// Defines: WORK_M.

#include "ops/matmul/common.cl"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
#define ACC4 CONCAT(ACC, 4)

// occupancy(matmul_vectorized): sixteen accumulators of 64 bits, for devices without local memory.
// coalescing(matmul_vectorized): neighbouring items load neighbouring vectors of four of b, and the
// same elements of a.
__kernel void matmul_vectorized(__global const T* a, __global const T* b, __global T* y,
                                __global const T* bias RESIDUAL_PARAMETER, long8 at, long8 size,
                                long8 sa, long4 sy) {
  const long column = (long)get_global_id(0) * 4, row = (long)get_global_id(1) * WORK_M;
  if (column >= size.s1 || row >= size.s0) return;
  TO_BATCH((long)get_global_id(2));
  b += column;
  ACC4 sum[WORK_M];
#pragma unroll
  for (int i = 0; i < WORK_M; ++i) sum[i] = (ACC4)(0);
  for (long k = 0; k < size.s2; ++k) {
    const ACC4 four = LOAD4(b, k * B_ROW);
#pragma unroll
    for (int i = 0; i < WORK_M; ++i) {
      // Rows past the end repeat the last one; they are not stored.
      const long at_m = min(row + i, size.s0 - 1);
      sum[i] += (ACC4)(LOAD_T(a, at_m * A_ROW + k * A_COL)) * four;
    }
  }
#pragma unroll
  for (int i = 0; i < WORK_M; ++i) {
    if (row + i >= size.s0) continue;
    STORE_Y(row + i, column, sum[i].s0);
    STORE_Y(row + i, column + 1, sum[i].s1);
    STORE_Y(row + i, column + 2, sum[i].s2);
    STORE_Y(row + i, column + 3, sum[i].s3);
  }
}
