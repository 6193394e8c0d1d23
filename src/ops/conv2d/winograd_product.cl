// The products of Winograd's convolution: for each of 16 places of a tile and each group the matrix
// u (K / groups, C / groups) times v (C / groups, tiles). A work-group owns TILE_M x TILE_N
// results; dimension 2 is the place and the group. Needs ACC and the tile sizes of gemm_tile.cl.
#include "ops/conv2d/geometry.cl"

typedef struct {
  global const ACC* a;
  global const ACC* b;
  int rows, terms;
  long columns;
} Operands;

ACC load_a(const Operands* o, int m, long k) {
  return m < o->rows && k < o->terms ? o->a[(long)m * o->terms + k] : (ACC)0;
}
ACC load_b(const Operands* o, long k, long n) {
  return k < o->terms && n < o->columns ? o->b[k * o->columns + n] : (ACC)0;
}

#include "ops/conv2d/gemm_tile.cl"

// occupancy(winograd_products): 16 accumulators, twice for long sums, are 64 registers in float64;
// their independent multiplications hide the latency that more items would.
// coalescing(winograd_products): tiles are filled along the contiguous axis of u and v, and results
// stored along that of m, neighbours by neighbours.
__attribute__((reqd_work_group_size(GROUP_N, GROUP_M, 1))) kernel void winograd_products(
    global const ACC* u, global const ACC* v, global ACC* m, const long8 at, const int16 g,
    const long columns) {
  local ACC a_tile[TILE_K][TILE_M + 1];
  local ACC b_tile[TILE_K][TILE_N + 1];
  GEOMETRY(g);
  // Dimension 2 is (element of the 4x4 tile, group), which follow each other in all three.
  const long matrix = get_group_id(2);
  const int Cg = C / GROUPS, Kg = K / GROUPS;
  const Operands o = {u + at.s0 + matrix * Kg * Cg, v + at.s1 + matrix * Cg * columns, Kg, Cg,
                      columns};
  m += at.s2 + matrix * Kg * columns;
  const int m0 = get_group_id(1) * TILE_M;
  const long n0 = (long)get_group_id(0) * TILE_N;
  ACC sums[WPT][WPT];
  gemm_tile(&o, m0, n0, Cg, a_tile, b_tile, sums);
#pragma unroll
  for (int i = 0; i < WPT; ++i)
#pragma unroll
    for (int j = 0; j < WPT; ++j) {
      const int row = m0 + get_local_id(1) + i * GROUP_M;
      const long n = n0 + get_local_id(0) + j * GROUP_N;
      if (row < Kg && n < columns) m[row * columns + n] = sums[i][j];
    }
}
