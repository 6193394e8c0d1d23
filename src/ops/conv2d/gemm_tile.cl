// A tile of a matrix product in local memory, shared by the variants that are one: TILE_M x TILE_N
// results per work-group, WPT x WPT of them per work-item, TILE_K terms at a time. The including
// file defines before it the type Operands and the functions
//   ACC load_a(const Operands* o, int m, long k), ACC load_b(const Operands* o, long k, long n)
// which return 0 outside of the matrices. A work-group is TILE_N / WPT by TILE_M / WPT items; item
// (i, j) owns the columns i, i + TILE_N / WPT, ... and the rows j, j + TILE_M / WPT, ...
// Every `CHUNK` terms the sums are added up for themselves, so that long ones lose little.
#define GROUP_N (TILE_N / WPT)
#define GROUP_M (TILE_M / WPT)
#define GROUP (GROUP_N * GROUP_M)
#define CHUNK_TILES 64

void gemm_tile(const Operands* o, const int m0, const long n0, const long terms,
               local ACC a[TILE_K][TILE_M + 1], local ACC b[TILE_K][TILE_N + 1],
               ACC total[WPT][WPT]) {
  const int column = get_local_id(0), row = get_local_id(1), item = row * GROUP_N + column;
  ACC sum[WPT][WPT];
#pragma unroll
  for (int i = 0; i < WPT; ++i)
#pragma unroll
    for (int j = 0; j < WPT; ++j) total[i][j] = sum[i][j] = 0;
  int tiles = 0;
  for (long k0 = 0; k0 < terms; k0 += TILE_K) {
    // Neighbours in memory are neighbours in k for a, in n for b.
    for (int i = item; i < TILE_M * TILE_K; i += GROUP)
      a[i % TILE_K][i / TILE_K] = load_a(o, m0 + i / TILE_K, k0 + i % TILE_K);
    for (int i = item; i < TILE_N * TILE_K; i += GROUP)
      b[i / TILE_N][i % TILE_N] = load_b(o, k0 + i / TILE_N, n0 + i % TILE_N);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE_K; ++k) {
      ACC bk[WPT];
#pragma unroll
      for (int j = 0; j < WPT; ++j) bk[j] = b[k][column + j * GROUP_N];
#pragma unroll
      for (int i = 0; i < WPT; ++i) {
        const ACC ak = a[k][row + i * GROUP_M];
#pragma unroll
        for (int j = 0; j < WPT; ++j) sum[i][j] += ak * bk[j];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (++tiles % CHUNK_TILES == 0)
#pragma unroll
      for (int i = 0; i < WPT; ++i)
#pragma unroll
        for (int j = 0; j < WPT; ++j) total[i][j] += sum[i][j], sum[i][j] = 0;
  }
#pragma unroll
  for (int i = 0; i < WPT; ++i)
#pragma unroll
    for (int j = 0; j < WPT; ++j) total[i][j] += sum[i][j];
}
