// y[o, j, i] = x[o, index, i], x seen as (outer, size, inner) and y as (outer, count, inner). The
// index is indices[j], or with PER_ELEMENT indices[o, j, i]. A work-item owns one element of y; the
// range is guarded; indices were checked before. Defines: T (an unsigned type of the element's
// size), IDX, LOAD_IDX, PER_ELEMENT (0 or 1), INDEX (uint where y has less than 2^31 elements).

// coalescing(index_rows): neighbouring items write neighbours and read neighbours of one row of x;
// where inner is 1 the reads go where the indices say.
__kernel void index_rows(__global const T* x, __global const IDX* indices, __global T* y, long8 at,
                         ulong n, long size, ulong count, ulong inner) {
  const ulong where = get_global_id(0);
  if (where >= n) return;
  x += at.s0;
  indices += at.s1;
  y += at.s2;
  const INDEX k = (INDEX)where, row = k / (INDEX)inner, i = k - row * (INDEX)inner;
  const INDEX o = row / (INDEX)count, j = row - o * (INDEX)count;
#if PER_ELEMENT
  const long index = LOAD_IDX(indices, where);
#else
  const long index = LOAD_IDX(indices, j);
#endif
  y[where] = x[((long)o * size + index) * (long)inner + (long)i];
}
