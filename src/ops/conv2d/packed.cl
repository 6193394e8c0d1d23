// Convolution for CPUs, without barriers. The filters are packed in blocks of TILE_K of them, the
// block's values side by side: w (groups * blocks, C / groups * R * S, TILE_K). A work-item owns
// TILE_Q neighbouring pixels of a row times one block, `tiles` times along the row; the pixels'
// values are broadcast, the block's are vectors. Rows come from x itself or from a padded copy
// (pack.cl), so that no tap is tested. Dimensions: parts of a row; rows of all images; blocks of
// all groups. Needs T and ACC, VEC and VECTORS (TILE_K = VEC * VECTORS), TILE_Q, ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define ACCV JOIN(ACC, VEC)
#define VLOAD JOIN(vload, VEC)
#define VSTORE JOIN(vstore, VEC)
#define TILE_K (VEC * VECTORS)

// steps: of x, between images, channels, rows, taps down, taps across, pixels; s6: of a group.
// device(conv2d_packed): CPU
kernel void conv2d_packed(global const ACC* x, global const ACC* w, global const T* b,
                          global T* y RESIDUAL_PARAMETER, const long8 at, const int16 g,
                          const long8 steps, const int tiles, const int rows, const int has_bias) {
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  GEOMETRY(g);
  if (get_global_id(1) >= (size_t)rows) return;
  const int Cg = C / GROUPS, Kg = K / GROUPS, blocks = (Kg + TILE_K - 1) / TILE_K;
  const int group = get_global_id(2) / blocks, k0 = get_global_id(2) % blocks * TILE_K;
  const long n = get_global_id(1) / P, p = get_global_id(1) % P;
  const long w_block = (long)Cg * R * S * TILE_K;
  const int filters = min(TILE_K, Kg - k0);
  const int first = get_global_id(0) * tiles * TILE_Q, end = min(Q, first + tiles * TILE_Q);
  for (int q0 = first; q0 < end; q0 += TILE_Q) {
    // The last tile of a row starts earlier and computes some pixels again, if x has no slack.
    const int q = steps.s7 ? q0 : min(q0, Q - TILE_Q);
    global const ACC* from = x + n * steps.s0 + group * steps.s6 + p * steps.s2 + q * steps.s5;
    global const ACC* weights = w + get_global_id(2) * w_block;
    ACCV sums[TILE_Q][VECTORS];
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) sums[j][v] = (ACCV)0;
    for (int c = 0; c < Cg; ++c)
      for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) {
          global const ACC* pixel = from + c * steps.s1 + r * steps.s3 + s * steps.s4;
#pragma unroll
          for (int v = 0; v < VECTORS; ++v) {
            const ACCV filter = VLOAD(v, weights);
#pragma unroll
            for (int j = 0; j < TILE_Q; ++j)
              sums[j][v] = fma((ACCV)(pixel[j * steps.s5]), filter, sums[j][v]);
          }
          weights += TILE_K;
        }
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j) {
      ACC lanes[TILE_K];
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) VSTORE(sums[j][v], v, lanes);
      if (q + j < q0 || q + j >= Q) continue;
      for (int i = 0; i < filters; ++i) {
        const long k = (long)group * Kg + k0 + i;
        ACC value = lanes[i];
        if (has_bias) value += LOAD_T(b, k);
        FINISH(((n * K + k) * P + p) * Q + q + j, value);
      }
    }
  }
}
