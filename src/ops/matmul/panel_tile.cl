// The inner product of CPU kernels: a tile of MR rows by NV vectors of VEC columns in registers,
// the left factor read where it is, one element at a time, the right one from a packed panel.
// Defines: MR, NV and vector_macros; Left and LOAD_LEFT(p, i), the type of the left factor in
// memory and how an element of it is read as an ACC; LEFT_SPACE when that is not global memory.
#include "ops/conv2d/epilogue_lanes.cl"
#include "ops/lanes.cl"

#define NR (NV * VEC)
#ifndef LEFT_SPACE
#define LEFT_SPACE global
#endif

typedef struct {
  ACCV of[MR][NV];
} Tile;

#define FOR_TILE(i, j) \
  _Pragma("unroll") for (int i = 0; i < MR; ++i) _Pragma("unroll") for (int j = 0; j < NV; ++j)

__attribute__((always_inline)) static inline void clear_tile(Tile* sum) {
  FOR_TILE(i, j) sum->of[i][j] = (ACCV)(0);
}

// Pointers to the rows of the left factor. Those from `rows` on repeat the first one.
#define LEFT_ROWS(from, a, row, rows) \
  LEFT_SPACE const Left* from[MR];    \
  _Pragma("unroll") for (int i = 0; i < MR; ++i) from[i] = (a) + (i < (rows) ? i * (row) : 0)

// One term: an element of each row times the first `vectors` of `values`.
#define ADD_TERM(sum, from, at, values, vectors)                           \
  _Pragma("unroll") for (int i = 0; i < MR; ++i) {                         \
    const ACCV factor = (ACCV)(LOAD_LEFT(from[i], at));                    \
    _Pragma("unroll") for (int j = 0; j < (vectors); ++j)(sum)->of[i][j] = \
        MULTIPLY_ADD(factor, values[j], (sum)->of[i][j]);                  \
  }

// sum += a (rows, terms) panel (terms, NR), of which the first `vectors` vectors count, a constant.
#define MULTIPLY_VECTORS(sum, a, row, column, rows, panel, terms, vectors)       \
  {                                                                              \
    LEFT_ROWS(from, a, row, rows);                                               \
    local const ACC* panel_at = panel;                                           \
    for (long k = 0, at = 0; k < (terms); ++k, panel_at += NR, at += (column)) { \
      ACCV values[vectors];                                                      \
      _Pragma("unroll") for (int j = 0; j < (vectors); ++j) values[j] =          \
          LOAD_LOCAL(panel_at + j * VEC);                                        \
      ADD_TERM(sum, from, at, values, vectors)                                   \
    }                                                                            \
  }
__attribute__((always_inline)) static inline void multiply_tile(Tile* sum, LEFT_SPACE const Left* a,
                                                                long row, long column, long rows,
                                                                local const ACC* panel,
                                                                long terms) {
  MULTIPLY_VECTORS(sum, a, row, column, rows, panel, terms, NV);
}
// The same of a panel with no more than one vector of columns.
__attribute__((always_inline)) static inline void multiply_narrow(Tile* sum,
                                                                  LEFT_SPACE const Left* a,
                                                                  long row, long column, long rows,
                                                                  local const ACC* panel,
                                                                  long terms) {
  MULTIPLY_VECTORS(sum, a, row, column, rows, panel, terms, 1);
}

// The same from the columns of b, `b_row` apart, which become the panel on the way: the first tile
// waits for memory anyway.
#define TERMS_AHEAD 8
__attribute__((always_inline)) static inline void multiply_and_pack(
    Tile* sum, LEFT_SPACE const Left* a, long row, long column, long rows, local ACC* panel,
    long terms, global const T* b, long b_row) {
  LEFT_ROWS(from, a, row, rows);
  long at = 0;
  for (long k = 0; k < terms; ++k) {
    ACCV values[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) {
      values[j] = LOADV(b, j * VEC);
      STORE_LOCAL(values[j], panel + j * VEC);
      if (j * VEC * sizeof(T) % 64 == 0) FETCH(b + TERMS_AHEAD * b_row + j * VEC);  // a line each
    }
    ADD_TERM(sum, from, at, values, NV)
    panel += NR;
    at += column;
    b += b_row;
  }
}

// All of it into memory.
__attribute__((always_inline)) static inline void keep_tile(const Tile* sum, ACC* to) {
  FOR_TILE(i, j) * (loose_lanes*)(to + i * NR + j * VEC) = sum->of[i][j];
}
__attribute__((always_inline)) static inline void keep_tile_local(const Tile* sum, local ACC* to) {
  FOR_TILE(i, j) STORE_LOCAL(sum->of[i][j], to + i * NR + j * VEC);
}
