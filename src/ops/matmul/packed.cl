// For CPUs. A work-group is one work-item, which owns `size.s5` rows of NR = NV * VEC columns of
// the result: it copies its columns of b into a panel in local memory, which there is ordinary
// memory that stays in the core's own cache, and multiplies tile after tile of rows with it. No
// barriers, one launch. Global size (parts of the rows, panels, batches).
// Defines: MR, NV, VEC, ACCV (a vector of VEC ACC); KC, the terms that a panel holds; CHUNKED when
// there are more of them: then the sums wait in `sums` (batches, M, N) from chunk to chunk.
#include "ops/matmul/common.cl"

#define LOAD_LEFT LOAD_T
typedef T Left;
#include "ops/matmul/panel_tile.cl"

#if CHUNKED
#define SUMS_PARAMETER , __global ACC* sums
#if HAS_RESIDUAL
#define SUMS_AT at.s5
#else
#define SUMS_AT at.s4
#endif
#else
#define SUMS_PARAMETER
#endif

// Columns of b as a panel: groups of NR for each term; what lies outside of b is zero.
void pack_columns(__local ACC* panel, __global const T* b, long terms, long columns, long row,
                  long column) {
  if (columns == NR && column == 1) {
    for (long k = 0; k < terms; ++k)
#pragma unroll
      for (int j = 0; j < NV; ++j)
        STORE_LANES(LOADV(b, k * row + j * VEC), panel + k * NR + j * VEC);
  } else if (column == 1) {
    for (long k = 0; k < terms; ++k) {
      for (long j = 0; j < columns; ++j) panel[k * NR + j] = LOAD_T(b, k * row + j);
      for (long j = columns; j < NR; ++j) panel[k * NR + j] = (ACC)0;
    }
  } else {
    // Down the columns, in which b is contiguous where it is a transposed matrix.
    for (long j = 0; j < columns; ++j)
      for (long k = 0; k < terms; ++k) panel[k * NR + j] = LOAD_T(b, k * row + j * column);
    for (long j = columns; j < NR; ++j)
      for (long k = 0; k < terms; ++k) panel[k * NR + j] = (ACC)0;
  }
}

// device(matmul_packed): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void matmul_packed(
    __global const T* a, __global const T* b, __global T* y,
    __global const T* bias RESIDUAL_PARAMETER SUMS_PARAMETER, long8 at, long8 size, long8 sa,
    long4 sy) {
  __local ACC panel[KC * NR];
  const long z = (long)get_global_id(2);
  TO_BATCH(z);
  const long first = (long)get_global_id(1) * NR, columns = min((long)NR, size.s1 - first);
  const long begin = (long)get_global_id(0) * size.s5, end = min(begin + size.s5, size.s0);
#if CHUNKED
  sums += SUMS_AT + z * size.s0 * size.s1 + first;
#endif
  for (long k0 = 0; k0 < size.s2; k0 += KC) {
    const long terms = min((long)KC, size.s2 - k0);
    pack_columns(panel, b + k0 * B_ROW + first * B_COL, terms, columns, B_ROW, B_COL);
    for (long row = begin; row < end; row += MR) {
      const long rows = min((long)MR, end - row);
      ACC tile[MR * NR];
      multiply_rows(a + row * A_ROW + k0 * A_COL, A_ROW, A_COL, rows, panel, terms, tile);
      for (long i = 0; i < rows; ++i) {
#if CHUNKED
        __global ACC* kept = sums + (row + i) * size.s1;
        if (k0 > 0)
          for (long j = 0; j < columns; ++j) tile[i * NR + j] += kept[j];
        if (k0 + KC < size.s2) {
          for (long j = 0; j < columns; ++j) kept[j] = tile[i * NR + j];
          continue;
        }
#endif
        if (sy.s1 == 1)
          for (long j = 0; j < columns; ++j)
            FINISH((row + i) * sy.s0 + first + j, WITH_BIAS(tile[i * NR + j], first + j));
        else
          for (long j = 0; j < columns; ++j) STORE_Y(row + i, first + j, tile[i * NR + j]);
      }
    }
  }
}
