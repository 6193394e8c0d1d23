// Winograd's F(4x4, 3x3) for CPUs: tiles of 4x4 results from 6x6 inputs with 36 products in the
// place of 144, all in one kernel. A work-group is one work-item: it transforms the inputs of
// NR = NV * VEC tiles into 36 panels in local memory, which there is ordinary memory of the core's
// own cache, and for MR filters at a time multiplies all 36 and transforms the sums back.
// Dimensions: parts of the filters; panels of tiles. u: the filters of winograd_filters.cl. Needs T
// and ACC, MR, NV, VEC and its macros, TERMS (the most channels), ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/matmul/panel_tile.cl"

#define TILE_SPACE local
#define SEEN NR
#include "ops/conv2d/winograd_tiles.cl"

// device(winograd_panels): CPU
// tiles: (tiles of all images, down, across, filters of a work-item).
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void winograd_panels(
    global const T* x, global const ACC* u, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int16 g, const long4 tiles, const int has_bias) {
  // A panel has slack behind its last channel, for transform_inputs.
  local ACC panels[36 * (TERMS * NR + VEC)];
  local ACC sums[36 * MR * NR];
  x += at.s0, u += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  GEOMETRY(g);
  const long first = get_global_id(1) * NR, count = min((long)NR, tiles.s0 - first);
  const long begin = get_global_id(0) * tiles.s3, end = min((long)K, begin + tiles.s3);
  const long limit = (long)N * C * H * W, step = C * NR + VEC;
  TilePlace places[NR];
  for (long i = 0; i < count; ++i) places[i] = place_of_tile(first + i, tiles, K, P, Q);
  const int8 image = (int8)(C, H, W, PAD_H, PAD_W, 0, 0, 0);
  SeenRows seen;
  clear_rows(&seen);
  for (long c = 0; c < C; ++c) {
    local ACC* to = panels + c * NR;
    transform_channel(x, limit, image, tiles, c, first, count, &seen, to, step, INPUTS);
    // Tiles that are not there.
    for (long place = 0; place < 36; ++place)
      for (long i = count; i < NR; ++i) to[place * step + i] = (ACC)0;
  }

  for (long row = begin; row < end; row += MR) {
    const long rows = min((long)MR, end - row);
    for (long e = 0; e < 36; ++e) {
      Tile sum;
      clear_tile(&sum);
      multiply_tile(&sum, u + (e * K + row) * C, C, 1, rows, panels + e * step, C);
      keep_tile_local(&sum, sums + e * MR * NR);
    }
    for (long i = 0; i < rows; ++i) {
      const ACC bias = has_bias ? LOAD_T(b, row + i) : (ACC)0;
      for (int j = 0; j < NV; ++j)
        STORE_TILES(sums + i * NR + j * VEC, MR * NR, places + j * VEC,
                    min((long)VEC, count - j * VEC), (row + i) * P * Q, bias)
    }
  }
}
