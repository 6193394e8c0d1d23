// The products of Winograd's convolution for CPUs where all tiles fit NV vectors: for each place
// m (K, tiles) = u (K, C) v (C, tiles). The filters are the larger factor by far, and each is used
// once: u lies in blocks of VEC filters, (places, blocks, C, VEC), in the order in which it is
// read. A work-group is one work-item, which owns size.s3 strips of MR filters of one place; MR
// divides VEC, and v stays in its first cache. Dimensions: parts of the strips; places. Rows of v
// and m have size.s2 elements, NV vectors at least. Needs ACC as T, MR, NV, VEC and its macros.
#define ACTIVATED(V, x) (x)  // the transform of the results does that
#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/matmul/panel_tile.cl"

#define TERMS_AHEAD_OF_MEMORY 24  // a line each

// size: filters, channels, elements of a row, strips of a work-item; step: of v and m, to the next
// place.
// device(winograd_strips): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void winograd_strips(
    global const ACC* u, global const ACC* v, global ACC* m, const long8 at, const long4 size,
    const long2 step) {
  const long K = size.s0, C = size.s1, place = get_global_id(1);
  const long begin = get_global_id(0) * size.s3, end = min((K + MR - 1) / MR, begin + size.s3);
  u += at.s0 + place * ((K + VEC - 1) / VEC) * VEC * C;
  v += at.s1 + place * step.s0, m += at.s2 + place * step.s1;
  for (long strip = begin; strip < end; ++strip) {
    const long k = strip * MR;
    global const ACC* block = u + k / VEC * VEC * C + k % VEC;
    LEFT_ROWS(from, block, 1, MR);
    Tile sum;
    clear_tile(&sum);
    for (long c = 0; c < C; ++c) {
      ACCV values[NV];
#pragma unroll
      for (int j = 0; j < NV; ++j) values[j] = LOAD_GLOBAL(v + c * size.s2 + j * VEC);
      FETCH(block + (c + TERMS_AHEAD_OF_MEMORY) * VEC);
      ADD_TERM(&sum, from, c * VEC, values, NV)
    }
    FOR_TILE(i, j) {
      if (k + i < K) STORE_GLOBAL(sum.of[i][j], m + (k + i) * size.s2 + j * VEC);
    }
  }
}
