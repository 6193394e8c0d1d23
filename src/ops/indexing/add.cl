// y[o, index, i] += source[o, j, i] for all j, y seen as (outer, size, inner) and source as (outer,
// count, inner). The index is indices[j], or with PER_ELEMENT indices[o, j, i]; indices were
// checked before. A work-item owns a column (o, i) of y and one of `parts` ranges of its rows, and
// walks all j in order: equal indices add up in one order on every device, without atomics. Parts
// only exist to keep the device busy when there are few columns. Defines: T (float, double, int or
// long), IDX, LOAD_IDX, PER_ELEMENT (0 or 1).

__kernel void add_rows(__global const T* source, __global const IDX* indices, __global T* y,
                       long8 at, ulong columns, long parts, long size, long count, long inner) {
  const ulong where = get_global_id(0);
  const long part = (long)(where / columns);
  if (part >= parts) return;
  source += at.s0;
  indices += at.s1;
  y += at.s2;
  const long column = (long)(where % columns), o = column / inner, i = column - o * inner;
  // The last range takes what is left.
  const long rows = size / parts, low = part * rows, high = part + 1 == parts ? size : low + rows;
  y += o * size * inner + i;
  const long first = o * count * inner + i;
  for (long j = 0; j < count; ++j) {
#if PER_ELEMENT
    const long index = LOAD_IDX(indices, first + j * inner);
#else
    const long index = LOAD_IDX(indices, j);
#endif
    if (index >= low && index < high) y[index * inner] += source[first + j * inner];
  }
}
