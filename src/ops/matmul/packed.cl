// For CPUs. A work-group is one work-item, which owns size.s5 tiles of MR rows, the first one
// `extra` more, counted down the rows and on at the top of the next size.s6 panels of NR = NV * VEC
// columns of the result. Chunk after chunk of the terms, it copies its columns of b into panels in
// local memory, which there is ordinary memory that stays in the core's own cache, and multiplies
// tile after tile of rows with them, strip by strip of size.s3 rows, which stay there while they
// meet all panels. No barriers, one launch. Global size (shares, 1, batches). Defines: MR, NV, VEC
// and vector_macros; PANEL_ELEMENTS of local memory.
// size.s7: the terms of a chunk; between chunks the sums wait in y, or with OWN_SUMS in `sums`
// (batches, M, N), where y is rounded or not contiguous along its rows. PACK_LEFT: tiles of a are
// copied as well, up to LEFT_TERMS terms, because their elements are far apart or have to be
// converted.
#include "ops/matmul/common.cl"

#if PACK_LEFT
#define LEFT_SPACE local
#define LEFT_PITCH ((MR + VEC - 1) / VEC * VEC)
#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#else
#define LOAD_LEFT LOAD_T
typedef T Left;
#endif
#include "ops/matmul/pack_panel.cl"

#if PACK_LEFT
#define STRIP MR
#else
#define STRIP size.s3
#endif
#if OWN_SUMS
#define SUMS_PARAMETER , __global ACC* sums
#if HAS_RESIDUAL
#define SUMS_AT at.s5
#else
#define SUMS_AT at.s4
#endif
#else
#define SUMS_PARAMETER
#endif

#if PACK_LEFT
// Rows of a as a panel: groups of LEFT_PITCH for each term, of which the first `rows` are used.
// `below`: the rows of a from here on.
void pack_rows(__local ACC* left, __global const T* a, long row, long column, long rows, long below,
               long terms) {
  if (column == 1 && terms >= VEC) {
    for (int first = 0; first < MR; first += VEC)
      for (long start = 0; start < terms; start += VEC) {
        const long k = min(start, terms - VEC);  // the last block overlaps the one before
        ACCV v[VEC];
#pragma unroll
        for (int i = 0; i < VEC; ++i) v[i] = LOADV(a, min((long)first + i, rows - 1) * row + k);
        transpose_lanes(v);
#pragma unroll
        for (int i = 0; i < VEC; ++i) STORE_LOCAL(v[i], left + (k + i) * LEFT_PITCH + first);
      }
  } else if (row == 1 && below >= LEFT_PITCH) {
    for (long k = 0; k < terms; ++k)
#pragma unroll
      for (int i = 0; i < LEFT_PITCH; i += VEC)
        STORE_LOCAL(LOADV(a, k * column + i), left + k * LEFT_PITCH + i);
  } else {
    for (long k = 0; k < terms; ++k)
      for (long i = 0; i < MR; ++i)
        left[k * LEFT_PITCH + i] = LOAD_T(a, min(i, rows - 1) * row + k * column);
  }
}
#endif

// device(matmul_packed): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void matmul_packed(
    __global const T* a, __global const T* b, __global T* y,
    __global const T* bias RESIDUAL_PARAMETER SUMS_PARAMETER, long8 at, long8 size, long8 sa,
    long4 sy, long extra) {
  __local ACC panels[PANEL_ELEMENTS];
#if PACK_LEFT
  __local ACC left[LEFT_PITCH * LEFT_TERMS];
#endif
  const long z = (long)get_global_id(2), share = (long)get_global_id(0);
  TO_BATCH(z);
#if OWN_SUMS
  __global ACC* kept = sums + SUMS_AT + z * size.s0 * size.s1;
  const long kept_row = size.s1;
#else
  __global ACC* kept = (__global ACC*)y;
  const long kept_row = sy.s0;
#endif
  const long tiles = (size.s0 + MR - 1) / MR;
  const long blocks = (size.s1 + size.s6 * NR - 1) / (size.s6 * NR);
  const long stop = min(extra + (share + 1) * size.s5, tiles * blocks);
  // From here to the end of the rows, or of the share.
  for (long tile_at = share > 0 ? extra + share * size.s5 : 0, count; tile_at < stop;
       tile_at += count) {
    const long block = tile_at / tiles, above = tile_at - block * tiles;
    count = min(tiles - above, stop - tile_at);
    const long begin = above * MR, end = min((above + count) * MR, size.s0);
    const long first = block * size.s6 * NR, last = min(first + size.s6 * NR, size.s1);
    for (long k0 = 0; k0 < size.s2; k0 += size.s7) {
      const long terms = min(size.s7, size.s2 - k0);
      const bool more = k0 + terms < size.s2;
      __global const T* right = b + k0 * B_ROW;
      for (long c = first; c < last; c += NR)
        if (B_COL != 1 || last - c < NR)
          pack_columns(panels + (c - first) * terms, right + c * B_COL, terms,
                       min((long)NR, last - c), B_ROW, B_COL);
      for (long top = begin; top < end; top += STRIP) {
        const long bottom = min(top + STRIP, end);
#if PACK_LEFT
        pack_rows(left, a + top * A_ROW + k0 * A_COL, A_ROW, A_COL, bottom - top, size.s0 - top,
                  terms);
#define LEFT_TILE left, 1, LEFT_PITCH, MR
#else
#define LEFT_TILE a + row *A_ROW + k0 *A_COL, A_ROW, A_COL, rows
#endif
        for (long c = first; c < last; c += NR)
          for (long row = top; row < bottom; row += MR) {
            __local ACC* panel = panels + (c - first) * terms;
            const long columns = min((long)NR, last - c), rows = min((long)MR, end - row);
            Tile sum;
            clear_tile(&sum);
            if (row == begin && B_COL == 1 && columns == NR)
              multiply_and_pack(&sum, LEFT_TILE, panel, terms, right + c, B_ROW);
            else if (NV > 1 && columns <= VEC)
              multiply_narrow(&sum, LEFT_TILE, panel, terms);
            else
              multiply_tile(&sum, LEFT_TILE, panel, terms);
            __global ACC* waiting = kept + row * kept_row + c;
            const long to = row * sy.s0 + c;
            // Whole vectors, then the columns behind them one by one.
            const long whole = sy.s1 == 1 ? columns / VEC * VEC : 0;
            FOR_TILE(i, j) {
              if (i < rows && j * VEC < whole) {
                if (k0 > 0) sum.of[i][j] += LOAD_GLOBAL(waiting + i * kept_row + j * VEC);
                if (more)
                  STORE_GLOBAL(sum.of[i][j], waiting + i * kept_row + j * VEC);
                else
                  FINISH_LANES(to + i * sy.s0 + j * VEC, WITH_BIASES(sum.of[i][j], c + j * VEC));
              }
            }
            if (whole == columns) continue;
            ACC tile[MR * NR];
            keep_tile(&sum, tile);
            for (long i = 0; i < rows; ++i)
              for (long j = whole; j < columns; ++j) {
                ACC value = tile[i * NR + j];
                if (k0 > 0) value += waiting[i * kept_row + j];
                if (more)
                  waiting[i * kept_row + j] = value;
                else
                  STORE_Y(row + i, c + j, value);
              }
          }
      }
    }
  }
}
