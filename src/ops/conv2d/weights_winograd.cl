// The gradient with respect to w of 3x3 convolutions for CPUs as Winograd's F(3x3, 4x4): the 4x4
// gradients of a tile are the filter that meets its 6x6 inputs, with 36 products in the place of
// 144. The products of all tiles are summed up before the transform back: 36 products of matrices
// (matmul/packed.cl), m = u v^T.
//   weights_winograd_tiles  x to v (36, >= C, pitch), dy to u (36, >= K, pitch); an item a channel
//                           of x, then of dy
//   weights_winograd_sums   m (36, K, C) to dw, an item a filter, VEC of the channels at a time
// tiles: (tiles of all images, down, across, pitch); a row has room for one vector more than its
// tiles, rounded up to whole vectors. Needs T and ACC, vector_macros.
#include "ops/conv2d/geometry.cl"
#include "ops/lanes.cl"

#define TILE_SPACE global
#define SEEN (4 * VEC)
#include "ops/conv2d/winograd_tiles.cl"

// device(weights_winograd_tiles, weights_winograd_sums): CPU
// steps: between the 36 places of v and of u.
kernel void weights_winograd_tiles(global const T* x, global const T* dy, global ACC* v,
                                   global ACC* u, const long8 at, const int16 g, const long4 tiles,
                                   const long2 steps) {
  x += at.s0, dy += at.s1, v += at.s2, u += at.s3;
  GEOMETRY(g);
  const long i = get_global_id(0);
  if (i >= C + K) return;
  SeenRows seen;
  clear_rows(&seen);
  if (i < C) {
    v += i * tiles.s3;
    transform_channel(x, (long)N * C * H * W, (int8)(C, H, W, PAD_H, PAD_W, 0, 0, 0), tiles, i, 0,
                      tiles.s0, &seen, v, steps.s0, INPUTS);
  } else {
    u += (i - C) * tiles.s3;
    transform_channel(dy, (long)N * K * P * Q, (int8)(K, P, Q, 0, 0, 0, 0, 0), tiles, i - C, 0,
                      tiles.s0, &seen, u, steps.s1, GRADIENTS);
  }
}

// One side of A^T m A: six sums to three taps.
#define TRANSFORM_TAPS(m0, m1, m2, m3, m4, m5, w0, w1, w2)    \
  {                                                           \
    const ACCV near_sum = (m1) + (m2), far_sum = (m3) + (m4); \
    w0 = (m0) + near_sum + far_sum;                           \
    w1 = (m1) - (m2) + (ACC)2 * ((m3) - (m4));                \
    w2 = near_sum + (ACC)4 * far_sum + (m5);                  \
  }

kernel void weights_winograd_sums(global const ACC* m, global T* dw, const long8 at,
                                  const long filters, const long channels) {
  m += at.s0, dw += at.s1;
  const long k = get_global_id(0);
  if (k >= filters) return;
  const long step = filters * channels;
  m += k * channels, dw += k * channels * 9;
  for (long start = 0; start < channels; start += VEC) {
    const long c = min(start, channels - VEC);  // the last vector overlaps the one before
    ACCV half_way[3][6];
    ACC taps[9][VEC];
#pragma unroll
    for (int s = 0; s < 6; ++s) {
      global const ACC* from = m + s * step + c;
      TRANSFORM_TAPS(LOAD_GLOBAL(from), LOAD_GLOBAL(from + 6 * step), LOAD_GLOBAL(from + 12 * step),
                     LOAD_GLOBAL(from + 18 * step), LOAD_GLOBAL(from + 24 * step),
                     LOAD_GLOBAL(from + 30 * step), half_way[0][s], half_way[1][s], half_way[2][s])
    }
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      ACCV row[3];
      TRANSFORM_TAPS(half_way[r][0], half_way[r][1], half_way[r][2], half_way[r][3], half_way[r][4],
                     half_way[r][5], row[0], row[1], row[2])
#pragma unroll
      for (int s = 0; s < 3; ++s) STORE_LANES(row[s], taps[r * 3 + s]);
    }
    for (int lane = 0; lane < VEC; ++lane)
#pragma unroll
      for (int tap = 0; tap < 9; ++tap) STORE_T(dw, (c + lane) * 9 + tap, taps[tap][lane]);
  }
}
