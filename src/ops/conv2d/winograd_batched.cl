// Winograd's F(4x4, 3x3) for CPUs where the transformed inputs of all channels do not fit a core's
// own cache: inputs and sums of all tiles lie in global memory, and in between are 36 products of
// matrices (matmul/packed.cl).
//   winograd_batched_inputs   x to v (36, >= C, pitch), an item a channel
//   winograd_batched_results  m (36, >= K, pitch) to y, an item a filter
// tiles: (tiles of all images, down, across, pitch), step: of v or m, between the 36 places; a row
// has room for one vector more than its tiles, rounded up to whole vectors. Needs T and ACC,
// vector_macros, ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"
#include "ops/lanes.cl"

#define TILE_SPACE global
#define SEEN (4 * VEC)
#include "ops/conv2d/winograd_tiles.cl"

// device(winograd_batched_inputs, winograd_batched_results): CPU
kernel void winograd_batched_inputs(global const T* x, global ACC* v, const long8 at, const int16 g,
                                    const long4 tiles, const long step) {
  x += at.s0, v += at.s1;
  GEOMETRY(g);
  const long c = get_global_id(0);
  if (c >= C) return;
  SeenRows seen;
  clear_rows(&seen);
  global ACC* to = v + c * tiles.s3;
  transform_channel(x, (long)N * C * H * W, (int8)(C, H, W, PAD_H, PAD_W, 0, 0, 0), tiles, c, 0,
                    tiles.s0, &seen, to, step, INPUTS);
  // The product computes whole vectors: with numbers, since denormal ones are slow.
  for (long place = 0; place < 36; ++place)
    for (long i = tiles.s0; i < tiles.s3; ++i) to[place * step + i] = (ACC)0;
}

kernel void winograd_batched_results(global const ACC* m, global const T* b,
                                     global T* y RESIDUAL_PARAMETER, const long8 at, const int16 g,
                                     const long4 tiles, const long step, const int has_bias) {
  m += at.s0, b += at.s1, y += at.s2;
  MOVE_RESIDUAL(at.s3);
  GEOMETRY(g);
  const long k = get_global_id(0);
  if (k >= K) return;
  const ACC bias = has_bias ? LOAD_T(b, k) : (ACC)0;
  for (long first = 0; first < tiles.s0; first += VEC) {
    const long lanes = min((long)VEC, tiles.s0 - first);
    TilePlace places[VEC];
    for (long i = 0; i < lanes; ++i) places[i] = place_of_tile(first + i, tiles, K, P, Q);
    STORE_TILES(m + k * tiles.s3 + first, step, places, lanes, k * P * Q, bias)
  }
}
