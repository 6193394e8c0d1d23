// y[o, index, i] += source[o, j, i] for all j, y seen as (outer, size, inner) and source as (outer,
// count, inner). The index is indices[j], or with PER_ELEMENT indices[o, j, i]; indices were
// checked before. A work-item owns up to COLUMNS neighbouring columns (o, i ...) of y and one of
// `parts` ranges of their rows, and walks all j in order: equal indices add up in one order on
// every device, without atomics. Parts only exist to keep the device busy when there are few
// columns. Defines: T (float, double, int or long), IDX, LOAD_IDX, PER_ELEMENT (0 or 1), COLUMNS.

// coalescing(add_rows): with inner > 1 neighbouring items own neighbouring columns; with COLUMNS >
// 1 each walks COLUMNS of them, and whole lines are used by the items of a warp together.
__kernel void add_rows(__global const T* source, __global const IDX* indices, __global T* y,
                       long8 at, ulong blocks, long parts, long size, long count, long inner) {
  const ulong where = get_global_id(0);
  const long part = (long)(where / blocks);
  if (part >= parts) return;
  source += at.s0;
  indices += at.s1;
  y += at.s2;
  const long block = (long)(where % blocks), per_row = (inner + COLUMNS - 1) / COLUMNS;
  const long o = block / per_row, i = (block - o * per_row) * COLUMNS;
  const int width = (int)min((long)COLUMNS, inner - i);
  // The last range takes what is left.
  const long rows = size / parts, low = part * rows, high = part + 1 == parts ? size : low + rows;
  y += o * size * inner + i;
  for (long j = 0; j < count; ++j) {
    const long from = (o * count + j) * inner + i;
#if PER_ELEMENT
    for (int k = 0; k < width; ++k) {
      const long index = LOAD_IDX(indices, from + k);
      if (index >= low && index < high) y[index * inner + k] += source[from + k];
    }
#else
    const long index = LOAD_IDX(indices, j);
    if (index < low || index >= high) continue;
    for (int k = 0; k < width; ++k) y[index * inner + k] += source[from + k];
#endif
  }
}
