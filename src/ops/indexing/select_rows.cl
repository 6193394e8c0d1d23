// y[o, j, i] = x[o, index, i] on CPUs, x seen as (outer, size, inner) and y as (outer, count,
// inner), a range of the rows (o, j) per work-item. The index is indices[j], or with PER_ELEMENT
// indices[o, j, i]. One that is not in [0, size) reads row 0 instead, and the first position of
// such a one that a work-item meets is its element of `bad`, else INT_MAX. Defines: T (an unsigned
// type of the element's size), IDX, LOAD_IDX, PER_ELEMENT (0 or 1), RUNS (rows are copied as runs
// of bytes: LONGEST and STREAMS, run.cl), cut then into pieces of `piece` elements for different
// work-items.

#if RUNS
#include "tensor/kernels/run.cl"
#endif

#define IS_GOOD(index, size) ((ulong)(index) < (ulong)(size))

// The first of n indices that is not good.
int first_bad(global const IDX* indices, long n, long size) {
  for (long k = 0; k < n; ++k)
    if (!IS_GOOD(LOAD_IDX(indices, k), size)) return (int)min(k, (long)(INT_MAX - 1));
  return INT_MAX;
}

// Elements of `from`, `step` apart for each place in `to`; whether all indices are good.
int pick(global const T* from, long pitch, long step, global const IDX* indices, global T* to,
         int n, long size) {
  int good = 1;
  for (int k = 0; k < n; ++k) {
    const long index = LOAD_IDX(indices, k);
    const int is_good = IS_GOOD(index, size);
    to[k] = from[(is_good ? index : 0) * pitch + k * step];
    good &= is_good;
  }
  return good;
}

// device(index_rows): CPU
__kernel void index_rows(__global const T* x, __global const IDX* indices, __global T* y,
                         __global int* bad, long8 at, long rows, long rows_per_item, long pieces,
                         long piece, long size, long count, long inner) {
  const long item = (long)get_global_id(0);
  long row = item / pieces * rows_per_item;
  if (row >= rows) return;
  const long end = min(row + rows_per_item, rows);
  x += at.s0;
  indices += at.s1;
  y += at.s2;
  bad += at.s3;
#if RUNS
  const long first = item % pieces * piece;
  const int bytes = (int)(min(piece, inner - first) * (long)sizeof(T));
#endif
  int found = INT_MAX;
  while (row < end) {
    const long o = row / count, j = row - o * count;
    const int n = (int)min(end - row, count - j);
    global const T* from = x + o * size * inner;
    global T* to = y + row * inner;
#if PER_ELEMENT
    const long where = row * inner;
#else
    const long where = j;
#endif
    global const IDX* index = indices + where;
    int good = 1;
#if RUNS
    for (int k = 0; k < n; ++k) {
      const long picked = LOAD_IDX(index, k);
      const int is_good = IS_GOOD(picked, size);
      copy_run((global const uchar*)(from + (is_good ? picked : 0) * inner + first),
               (global uchar*)(to + k * inner + first), bytes);
      good &= is_good;
    }
#else
    if (inner == 1) {
      good = pick(from, 1, 0, index, to, n, size);
    } else {
      for (int k = 0; k < n; ++k, to += inner) {
#if PER_ELEMENT
        good &= pick(from, inner, 1, index + k * inner, to, (int)inner, size);
#else
        const long picked = LOAD_IDX(index, k);
        const int is_good = IS_GOOD(picked, size);
        global const T* row_of = from + (is_good ? picked : 0) * inner;
        for (int i = 0; i < (int)inner; ++i) to[i] = row_of[i];
        good &= is_good;
#endif
      }
    }
#endif
    if (!good) {
#if PER_ELEMENT
      const int first_one = first_bad(index, n * inner, size);
#else
      const int first_one = first_bad(index, n, size);
#endif
      found = min(found, (int)min(where + first_one, (long)(INT_MAX - 1)));
    }
    row += n;
  }
  bad[item] = found;
}
