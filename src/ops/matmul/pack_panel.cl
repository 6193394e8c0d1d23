// The right factor of a product copied into a panel, beside what multiplies with it. Defines: those
// of panel_tile.cl.
#include "ops/matmul/panel_tile.cl"

// VEC columns of a transposed b, whose `terms` are contiguous, into lanes of a panel.
void pack_transposed(__local ACC* panel, __global const T* b, long terms, long column) {
  for (long start = 0; start < terms; start += VEC) {
    const long k = min(start, terms - VEC);  // the last block overlaps the one before
    ACCV v[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i) v[i] = LOADV(b, i * column + k);
    transpose_lanes(v);
#pragma unroll
    for (int i = 0; i < VEC; ++i) STORE_LOCAL(v[i], panel + (k + i) * NR);
  }
}

// Columns of b as a panel: groups of NR for each term; what lies outside of b is zero.
void pack_columns(__local ACC* panel, __global const T* b, long terms, long columns, long row,
                  long column) {
  if (column == 1) {
    for (long k = 0; k < terms; ++k) {
      long j = 0;
      for (; j + VEC <= columns; j += VEC) STORE_LOCAL(LOADV(b, k * row + j), panel + k * NR + j);
      for (; j < columns; ++j) panel[k * NR + j] = LOAD_T(b, k * row + j);
      for (; j < NR; ++j) panel[k * NR + j] = (ACC)0;
    }
    return;
  }
  long j = 0;
  if (row == 1 && terms >= VEC)
    for (; j + VEC <= columns; j += VEC) pack_transposed(panel + j, b + j * column, terms, column);
  for (; j < columns; ++j)
    for (long k = 0; k < terms; ++k) panel[k * NR + j] = LOAD_T(b, k * row + j * column);
  for (; j < NR; ++j)
    for (long k = 0; k < terms; ++k) panel[k * NR + j] = (ACC)0;
}
