// Winograd's F(2x2, 3x3): tiles of 2x2 results from 4x4 inputs with 16 products in the place of 36.
//   winograd_filters  u = G w G^T   an item per filter and channel (K, C / groups)
//   winograd_inputs   v = B^T d B   an item per channel and tile, from the image `first` on
//   m = u v                         by winograd_product.cl
//   winograd_outputs  y = A^T m A   an item per filter and tile; bias, residual and activation
// u (16, K, C / groups), v (16, C, tiles) and m (16, K, tiles) are in the accumulator's type. For
// winograd_strips.cl rows of v and m may be longer than the tiles: what lies behind them is zero.
// Needs T and ACC, ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

// coalescing(winograd_filters): neighbouring items write neighbours of each of the 16 planes of u;
// they read 9 neighbouring weights each, whole lines by a warp together.
kernel void winograd_filters(global const T* w, global ACC* u, const long8 at, const long count) {
  w += at.s0, u += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  ACC half_way[4][3];
  for (int s = 0; s < 3; ++s) {
    const ACC w0 = LOAD_T(w, i * 9 + s), w1 = LOAD_T(w, i * 9 + 3 + s),
              w2 = LOAD_T(w, i * 9 + 6 + s);
    half_way[0][s] = w0;
    half_way[1][s] = (w0 + w1 + w2) * (ACC)0.5;
    half_way[2][s] = (w0 - w1 + w2) * (ACC)0.5;
    half_way[3][s] = w2;
  }
  for (int r = 0; r < 4; ++r) {
    const ACC w0 = half_way[r][0], w1 = half_way[r][1], w2 = half_way[r][2];
    global ACC* to = u + r * 4 * count + i;
    to[0] = w0;
    to[count] = (w0 + w1 + w2) * (ACC)0.5;
    to[2 * count] = (w0 - w1 + w2) * (ACC)0.5;
    to[3 * count] = w2;
  }
}

// tiles: (tiles of all images at hand, tiles down, tiles across, elements of a row); first: the
// first image.
// coalescing(winograd_inputs): neighbouring items own neighbouring tiles: they read near elements
// of the same rows and write neighbours of each plane of v.
kernel void winograd_inputs(global const T* x, global ACC* v, const long8 at, const int16 g,
                            const long4 tiles, const long first) {
  x += at.s0, v += at.s1;
  GEOMETRY(g);
  const long i = get_global_id(0);
  if (i >= tiles.s3 * C) return;
  const int c = (int)(i / tiles.s3);
  const long tile = i % tiles.s3;
  const int across = (int)(tile % tiles.s2), down = (int)(tile / tiles.s2 % tiles.s1);
  const long image = first + tile / (tiles.s1 * tiles.s2);
  const int h0 = down * 2 - PAD_H, w0 = across * 2 - PAD_W;
  const long plane = (image * C + c) * H;
  ACC d[4][4];
  for (int r = 0; r < 4; ++r)
    for (int s = 0; s < 4; ++s) {
      const int h = h0 + r, w = w0 + s;
      const bool inside = h >= 0 && h < H && w >= 0 && w < W && tile < tiles.s0;
      d[r][s] = inside ? LOAD_T(x, (plane + h) * W + w) : (ACC)0;
    }
  ACC e[4][4];
  for (int s = 0; s < 4; ++s) {
    e[0][s] = d[0][s] - d[2][s];
    e[1][s] = d[1][s] + d[2][s];
    e[2][s] = d[2][s] - d[1][s];
    e[3][s] = d[1][s] - d[3][s];
  }
  const long step = tiles.s3 * C;
  for (int r = 0; r < 4; ++r) {
    global ACC* to = v + r * 4 * step + i;
    to[0] = e[r][0] - e[r][2];
    to[step] = e[r][1] + e[r][2];
    to[2 * step] = e[r][2] - e[r][1];
    to[3 * step] = e[r][1] - e[r][3];
  }
}

// occupancy(winograd_outputs): 16 products and an activation in float64 take 51 registers, of which
// Vega has few.
// coalescing(winograd_outputs): neighbouring items read neighbours of each plane of m and write
// pairs of neighbouring pixels.
kernel void winograd_outputs(global const ACC* m, global const T* b, global T* y RESIDUAL_PARAMETER,
                             const long8 at, const int16 g, const long4 tiles, const long first,
                             const int has_bias) {
  m += at.s0, b += at.s1, y += at.s2;
  MOVE_RESIDUAL(at.s3);
  GEOMETRY(g);
  const long i = get_global_id(0);
  if (i >= tiles.s0 * K) return;
  const int k = (int)(i / tiles.s0);
  const long tile = i % tiles.s0;
  const int across = (int)(tile % tiles.s2), down = (int)(tile / tiles.s2 % tiles.s1);
  const long image = first + tile / (tiles.s1 * tiles.s2);
  const long step = tiles.s3 * K;
  m += k * tiles.s3 + tile;
  ACC e[2][4];
  for (int s = 0; s < 4; ++s) {
    const ACC m0 = m[s * step], m1 = m[(4 + s) * step], m2 = m[(8 + s) * step],
              m3 = m[(12 + s) * step];
    e[0][s] = m0 + m1 + m2;
    e[1][s] = m1 - m2 - m3;
  }
  ACC bias = 0;
  if (has_bias) bias = LOAD_T(b, k);
    // Unrolled: with a variable index the sums would live in memory.
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const int p = down * 2 + r, q = across * 2 + s;
      if (p >= P || q >= Q) continue;
      const ACC value = s == 0 ? e[r][0] + e[r][1] + e[r][2] : e[r][1] - e[r][2] - e[r][3];
      FINISH(((image * K + k) * P + p) * Q + q, value + bias);
    }
}
