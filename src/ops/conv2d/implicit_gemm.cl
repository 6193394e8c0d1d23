// conv2d as one matrix product per group, w (K / groups, C R S) times the columns of x, which are
// never stored: their elements are found by index arithmetic. A work-group owns TILE_M filters and
// TILE_N pixels of all images; dimension 2 is the group. Needs T and ACC, ACTIVATION and
// the tile sizes of gemm_tile.cl.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

typedef struct {
  global const T* x;
  global const T* w;
  int16 g;
  int group;
} Operands;

ACC load_a(const Operands* o, int m, long k) {
  const int Kg = o->g.s4 / o->g.sf;
  const long taps = (long)(o->g.s1 / o->g.sf) * o->g.s5 * o->g.s6;
  return m < Kg && k < taps ? LOAD_T(o->w, ((long)o->group * Kg + m) * taps + k) : (ACC)0;
}

ACC load_b(const Operands* o, long k, long n) {
  GEOMETRY(o->g);
  const int Cg = C / GROUPS;
  if (k >= (long)Cg * R * S || n >= (long)N * P * Q) return (ACC)0;
  const int c = (int)(k / (R * S)), tap = (int)(k - (long)c * (R * S));
  const int pixels = P * Q, image = (int)(n / pixels), pixel = (int)(n - (long)image * pixels);
  const int h = pixel / Q * STRIDE_H + tap / S * DIL_H - PAD_H;
  const int w = pixel % Q * STRIDE_W + tap % S * DIL_W - PAD_W;
  if (h < 0 || h >= H || w < 0 || w >= W) return (ACC)0;
  return LOAD_T(o->x, (((long)image * C + o->group * Cg + c) * H + h) * W + w);
}

#include "ops/conv2d/gemm_tile.cl"

// occupancy(conv2d_implicit_gemm): as winograd_products, with the place of a tap to compute.
// coalescing(conv2d_implicit_gemm): tiles of the filters are filled along their taps and tiles of x
// along its pixels, neighbours by neighbours; neighbours write neighbouring pixels.
__attribute__((reqd_work_group_size(GROUP_N, GROUP_M, 1))) kernel void conv2d_implicit_gemm(
    global const T* x, global const T* w, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int16 g, const int has_bias) {
  local ACC a_tile[TILE_K][TILE_M + 1];
  local ACC b_tile[TILE_K][TILE_N + 1];
  GEOMETRY(g);
  const int group = get_group_id(2), Kg = K / GROUPS;
  const Operands o = {x + at.s0, w + at.s1, g, group};
  b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  const int m0 = get_group_id(1) * TILE_M;
  const long n0 = (long)get_group_id(0) * TILE_N, pixels = (long)P * Q;
  ACC sums[WPT][WPT];
  gemm_tile(&o, m0, n0, (long)(C / GROUPS) * R * S, a_tile, b_tile, sums);
#pragma unroll
  for (int i = 0; i < WPT; ++i) {
    const int m = m0 + get_local_id(1) + i * GROUP_M;
#pragma unroll
    for (int j = 0; j < WPT; ++j) {
      const long n = n0 + get_local_id(0) + j * GROUP_N;
      if (m >= Kg || n >= N * pixels) continue;
      const long k = (long)group * Kg + m;
      ACC value = sums[i][j];
      if (has_bias) value += LOAD_T(b, k);
      FINISH((n / pixels * K + k) * pixels + n % pixels, value);
    }
  }
}
