// Arrays whose elements depend on their place: triangles of matrices, one-hot rows. A work-item
// owns one element of y; the range is guarded. Defines: T (of triangle an unsigned type of the
// element's size), INDEX (uint where y has less than 2^31 elements) and, in one_hot, STORE_T, ACC,
// IDX, LOAD_IDX and ONE_HOT.

#ifdef ONE_HOT
// coalescing(one_hot): neighbouring items write neighbours; those of a row read the same index.
__kernel void one_hot(__global const IDX* indices, __global T* y, long8 at, ulong n,
                      ulong classes) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  indices += at.s0;
  y += at.s1;
  const INDEX row = (INDEX)i / (INDEX)classes;
  const ACC hot = (ulong)LOAD_IDX(indices, row) == i - (ulong)row * classes ? 1 : 0;
  STORE_T(y, i, hot);
}
#else
// Keeps what is on one side of a diagonal: lower 1 keeps column <= row + diagonal, 0 keeps >=.
// coalescing(triangle): neighbouring items read and write neighbours.
__kernel void triangle(__global const T* x, __global T* y, long8 at, ulong n, ulong rows,
                       ulong columns, long diagonal, int lower) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  x += at.s0;
  y += at.s1;
  const INDEX all_rows = (INDEX)i / (INDEX)columns;
  const long column = (long)((INDEX)i - all_rows * (INDEX)columns);
  const long row = (long)(all_rows % (INDEX)rows);
  const int keep = lower ? column - row <= diagonal : column - row >= diagonal;
  y[i] = keep ? x[i] : (T)0;
}
#endif
