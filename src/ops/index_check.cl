// Finds the first index that is not in [0, size). Work-item i looks at the elements i, i + global
// size, ...; the smallest bad position is kept in bad[0]. Defines: IDX, LOAD_IDX.

// coalescing(index_check): neighbouring items read neighbouring indices.
__kernel void index_check(__global const IDX* indices, __global int* bad, long8 at, ulong n,
                          long size) {
  indices += at.s0;
  bad += at.s1;
  for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
    const long index = LOAD_IDX(indices, i);
    if (index >= 0 && index < size) continue;
    // A position that an int cannot hold is named as the largest that it can.
    atomic_min(bad, (int)min(i, (ulong)(INT_MAX - 1)));
    return;
  }
}
