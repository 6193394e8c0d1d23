// One work-item per result. Works everywhere. Sums are taken in blocks, so that the error grows
// with the number of blocks and not with K. Global size: (N, M, batches), guarded.

#include "ops/matmul/common.cl"

#define BLOCK 256

// coalescing(matmul_naive): neighbouring items own neighbouring columns: they read neighbours of b,
// the same element of a, and write neighbours.
__kernel void matmul_naive(__global const T* a, __global const T* b, __global T* y,
                           __global const T* bias RESIDUAL_PARAMETER, long8 at, long8 size,
                           long8 sa, long4 sy) {
  const long column = (long)get_global_id(0), row = (long)get_global_id(1);
  if (column >= size.s1 || row >= size.s0) return;
  TO_BATCH((long)get_global_id(2));
  a += row * A_ROW;
  b += column * B_COL;
  ACC total = 0;
  for (long start = 0; start < size.s2; start += BLOCK) {
    const long stop = min(start + BLOCK, size.s2);
    ACC part = 0;
    for (long k = start; k < stop; ++k) part += LOAD_T(a, k * A_COL) * LOAD_T(b, k * B_ROW);
    total += part;
  }
  STORE_Y(row, column, total);
}
