// Copies elements between two strided arrays on CPUs, a tile per work-item: cuts of axis 0, along
// which dst is walked, and of axis 1, along which src is contiguous where one is, so that whole
// lines of both are used while they are in the cache. Defines: T (a type of the element's size),
// RUNS (both sides are contiguous along axis 0). tile: elements of it along axes 0 and 1, and the
// number of tiles along them.

// device(copy_tiles): CPU
__kernel void copy_tiles(__global const T* src, __global T* dst, ulong tiles, long dst_offset,
                         long src_offset, long8 sizes, long8 dst_strides, long8 src_strides,
                         long4 tile) {
  long rest = (long)get_global_id(0);
  if (rest >= (long)tiles) return;
  long size[8], to[8], from[8];
  // Halves: PoCL 3.0 cannot store 64 bytes at once on some processors.
  vstore4(sizes.lo, 0, size), vstore4(sizes.hi, 0, size + 4);
  vstore4(dst_strides.lo, 0, to), vstore4(dst_strides.hi, 0, to + 4);
  vstore4(src_strides.lo, 0, from), vstore4(src_strides.hi, 0, from + 4);
  const long first0 = rest % tile.s2 * tile.s0;
  rest /= tile.s2;
  const long first1 = rest % tile.s3 * tile.s1;
  rest /= tile.s3;
  dst += dst_offset + first0 * to[0] + first1 * to[1];
  src += src_offset + first0 * from[0] + first1 * from[1];
  for (int axis = 2; axis < 8; ++axis) {
    const long at = rest % size[axis];
    rest /= size[axis];
    dst += at * to[axis];
    src += at * from[axis];
  }
  const long count0 = min(tile.s0, size[0] - first0), count1 = min(tile.s1, size[1] - first1);
  for (long j = 0; j < count1; ++j) {
#if RUNS
    for (long i = 0; i < count0; ++i) dst[i] = src[i];
#else
    for (long i = 0; i < count0; ++i) dst[i * to[0]] = src[i * from[0]];
#endif
    dst += to[1];
    src += from[1];
  }
}
