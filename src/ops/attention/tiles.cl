// Attention for CPUs. A work-item owns `rows` neighbouring queries of a batch, whose running sums
// lie in local memory, which on a CPU is the cache of its core. It walks over blocks of keys: k of
// a block becomes panels across keys, v panels across columns, and for each tile of MR queries the
// scores of the block are a product in registers, then weights, then the left factor of a product
// with v. The score matrix is never stored.
// Global size (parts of the queries, batches). Defines: those of panel_tile.cl, lane_math.cl and
// scores.cl, ROOM (elements of local memory), SCORE_PITCH.
// int8 cut: rows of a work-item, keys of a block, elements between queries.
#include "ops/attention/scores.cl"

// to = to * shrink + weights (rows, keys) panel, of which the first `vectors` vectors count.
#define ADD_VALUES(multiply, vectors, to, panel)                                                  \
  {                                                                                               \
    Tile sum;                                                                                     \
    FOR_TILE(i, j)                                                                                \
    if (j < (vectors)) sum.of[i][j] = LOAD_LOCAL((to) + i * columns + j * VEC) * (ACCV)shrink[i]; \
    multiply(&sum, weights, SCORE_PITCH, 1, rows, panel, keys);                                   \
    FOR_TILE(i, j) if (j < (vectors)) STORE_LOCAL(sum.of[i][j], (to) + i * columns + j * VEC);    \
  }

// device(attention_tiles): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention_tiles(
    __global const T* q, __global const T* k, __global const T* v, __global const M* mask,
    __global T* y, __global ACC* lse, long8 at, long4 size, long4 sm, long inner, ACC scale,
    int8 cut) {
  __local ACC room[ROOM];
  const long z = (long)get_global_id(1), from = (long)get_global_id(0) * cut.s0;
  const int E = (int)size.s2, F = (int)size.s3, block = cut.s1, pitch = cut.s2;
  const int queries = (int)min((long)cut.s0, size.s0 - from);
  const int columns = (F + NR - 1) / NR * NR, padded = (queries + MR - 1) / MR * MR;
  local ACC* k_panels = room;
  local ACC* v_panels = k_panels + block * E;
  local ACC* left = v_panels + block * columns;
  local ACC* sums = left + cut.s0 * pitch;
  local ACC* weights = sums + cut.s0 * columns;
  local ACC* tops = weights + MR * SCORE_PITCH;
  local ACC* totals = tops + cut.s0;
  q += at.s0 + (z * size.s0 + from) * E;
  k += at.s1 + z * size.s1 * E;
  v += at.s2 + z * size.s1 * F;
  mask += at.s3;
  mask = MASK_OF(z);
  y += at.s4 + (z * size.s0 + from) * F;
  lse += at.s5 + z * size.s0 + from;

  copy_rows(left, q, queries, E, pitch, scale);
  for (int i = 0; i < padded; ++i) tops[i] = -INFINITY, totals[i] = 0;
  for (int i = 0; i < padded * columns; i += VEC) STORE_LOCAL((ACCV)(0), sums + i);

  const long last = CAUSAL ? min(size.s1, from + queries) : size.s1;
  for (long start = 0; start < last; start += block) {
    const int count = (int)min((long)block, last - start);
    for (int s = 0; s < count; s += NR)
      pack_columns(k_panels + s * E, k + (start + s) * E, E, min(NR, count - s), 1, E);
    const bool finite = pack_rows_of(v_panels, v + start * F, count, F, block);
    for (int first = 0; first < queries; first += MR) {
      const int rows = min(MR, queries - first);
      const int keys = CAUSAL ? (int)clamp(from + first + rows - start, 0L, (long)count) : count;
      if (keys == 0) continue;
      score_tile(left + first * pitch, pitch, rows, k_panels, E, keys, weights);
      ACC shrink[MR];
      for (int i = 0; i < MR; ++i) shrink[i] = 0;
      for (int i = 0; i < rows; ++i) {
        const ACC top =
            mask_scores(weights + i * SCORE_PITCH, keys, mask, from + first + i, start, sm);
        WEIGH(weights + i * SCORE_PITCH, keys, top, tops[first + i], totals[first + i], shrink[i]);
      }
      local ACC* to = sums + first * columns;
      if (!finite) {
        for (int i = 0; i < rows; ++i)
          for (int c = 0; c < columns; ++c) to[i * columns + c] *= shrink[i];
        ADD_FINITE(to, columns, weights, SCORE_PITCH, 1, rows, v_panels, block, keys, F)
        continue;
      }
      for (int c = 0; c < columns; c += NR)
        if (NV > 1 && F - c <= VEC)
          ADD_VALUES(multiply_narrow, 1, to + c, v_panels + c * block)
        else
          ADD_VALUES(multiply_tile, NV, to + c, v_panels + c * block)
    }
  }
  for (int i = 0; i < queries; ++i) {
    const ACC total = totals[i];
    const ACC factor = size.s1 == 0 ? (ACC)0 : 1 / total;
    store_row(y + i * F, sums + i * columns, F, factor);
    lse[i] = tops[i] + log(total);
  }
}
