// Tiles of a and b in local memory. A work-group owns TILE_M x TILE_N results, a work-item WORK_M x
// WORK_N of them, a group's width apart, so that neighbours read neighbouring columns. Tiles are
// filled along whichever axis lies contiguously in memory. Local size:
// (TILE_N / WORK_N, TILE_M / WORK_M); global: a group per tile, times the batches; no range to
// guard because loads and stores check. Defines: TILE_M TILE_N TILE_K WORK_M WORK_N, KERNEL (the
// kernel's name). Barriers are reached by all work-items alike.

#include "ops/matmul/common.cl"

#define GROUP_N (TILE_N / WORK_N)
#define GROUP_M (TILE_M / WORK_M)
#define GROUP (GROUP_M * GROUP_N)

// One more column keeps work-items of a warp in different banks.
#define PITCH_A (TILE_M + 1)
#define PITCH_B (TILE_N + 1)

// occupancy(matmul_register_tiled): an item has 16 or 64 accumulators in registers; their
// independent multiplications hide the latency that more items would.
// coalescing(matmul_tiled, matmul_register_tiled): tiles are filled along the axis that is
// contiguous in memory, neighbours by neighbours; results are stored a group's width apart, so that
// neighbours write neighbours.
__kernel __attribute__((reqd_work_group_size(GROUP_N, GROUP_M, 1))) void KERNEL(
    __global const T* a, __global const T* b, __global T* y,
    __global const T* bias RESIDUAL_PARAMETER, long8 at, long8 size, long8 sa, long4 sy) {
  __local ACC tile_a[TILE_K * PITCH_A];
  __local ACC tile_b[TILE_K * PITCH_B];
  const int n = get_local_id(0), m = get_local_id(1), item = m * GROUP_N + n;
  const long first_n = (long)get_group_id(0) * TILE_N, first_m = (long)get_group_id(1) * TILE_M;
  const bool a_along_k = A_COL == 1, b_along_k = B_ROW == 1;
  TO_BATCH((long)get_group_id(2));

  ACC sum[WORK_M][WORK_N];
#pragma unroll
  for (int i = 0; i < WORK_M; ++i)
#pragma unroll
    for (int j = 0; j < WORK_N; ++j) sum[i][j] = 0;

  for (long start = 0; start < size.s2; start += TILE_K) {
    for (int i = item; i < TILE_K * TILE_M; i += GROUP) {
      const int k = a_along_k ? i % TILE_K : i / TILE_M;
      const int row = a_along_k ? i / TILE_K : i % TILE_M;
      const bool inside = first_m + row < size.s0 && start + k < size.s2;
      tile_a[k * PITCH_A + row] =
          inside ? LOAD_T(a, (first_m + row) * A_ROW + (start + k) * A_COL) : (ACC)0;
    }
    for (int i = item; i < TILE_K * TILE_N; i += GROUP) {
      const int k = b_along_k ? i % TILE_K : i / TILE_N;
      const int column = b_along_k ? i / TILE_K : i % TILE_N;
      const bool inside = first_n + column < size.s1 && start + k < size.s2;
      tile_b[k * PITCH_B + column] =
          inside ? LOAD_T(b, (start + k) * B_ROW + (first_n + column) * B_COL) : (ACC)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE_K; ++k) {
      ACC column[WORK_N];
#pragma unroll
      for (int j = 0; j < WORK_N; ++j) column[j] = tile_b[k * PITCH_B + n + j * GROUP_N];
#pragma unroll
      for (int i = 0; i < WORK_M; ++i) {
        const ACC value = tile_a[k * PITCH_A + m + i * GROUP_M];
#pragma unroll
        for (int j = 0; j < WORK_N; ++j) sum[i][j] += value * column[j];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int i = 0; i < WORK_M; ++i) {
    const long row = first_m + m + i * GROUP_M;
    if (row >= size.s0) continue;
#pragma unroll
    for (int j = 0; j < WORK_N; ++j) {
      const long at_n = first_n + n + j * GROUP_N;
      if (at_n < size.s1) STORE_Y(row, at_n, sum[i][j]);
    }
  }
}
