// The inner product of CPU kernels: a tile of MR rows by NV vectors of VEC columns in registers,
// the left factor read where it is, one element at a time, the right one from a packed panel.
// Defines: MR, NV, VEC, ACCV, VLOAD, STORE_LANES, MULTIPLY_ADD; Left and LOAD_LEFT(p, i), the type
// of the left factor in memory and how an element of it is read as an ACC.
#define NR (NV * VEC)

// tile (MR, NR) = a (rows, terms) panel (terms, NR). Rows from `rows` on repeat the last one.
// TILE_SPACE: where tiles are kept, private memory unless said otherwise.
#ifndef TILE_SPACE
#define TILE_SPACE
#endif
void multiply_rows(__global const Left* a, long row, long column, long rows,
                   __local const ACC* panel, long terms, TILE_SPACE ACC* tile) {
  __global const Left* from[MR];
  ACCV sum[MR][NV];
#pragma unroll
  for (int i = 0; i < MR; ++i) {
    from[i] = a + min((long)i, rows - 1) * row;
#pragma unroll
    for (int j = 0; j < NV; ++j) sum[i][j] = (ACCV)(0);
  }
  long at_term = 0;
  for (long k = 0; k < terms; ++k) {
    ACCV values[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) values[j] = VLOAD(j, panel);
#pragma unroll
    for (int i = 0; i < MR; ++i) {
      const ACCV factor = (ACCV)(LOAD_LEFT(from[i], at_term));
#pragma unroll
      for (int j = 0; j < NV; ++j) sum[i][j] = MULTIPLY_ADD(factor, values[j], sum[i][j]);
    }
    panel += NR;
    at_term += column;
  }
#pragma unroll
  for (int i = 0; i < MR; ++i)
#pragma unroll
    for (int j = 0; j < NV; ++j) STORE_LANES(sum[i][j], tile + i * NR + j * VEC);
}
