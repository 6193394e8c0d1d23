// Copies elements between two strided arrays of different dtypes on CPUs, a tile per work-item:
// cuts of axis 0, along which dst is walked, and of axis 1, so that whole lines of both are used
// while they are in the cache. Defines: those of convert_vectors.cl, RUNS (both sides are
// contiguous along axis 0). tile: elements of it along axes 0 and 1, and the number of tiles along
// them.

#include "tensor/kernels/convert_vectors.cl"

#define TILE 1024  // elements, at most, of a tile without RUNS

#if RUNS
void cast_run(__global const SRC* src, __global DST* dst, int n) {
  for (int i = 0; i + VEC <= n; i += VEC)
    STORE_DSTS(converted(LOAD_SRCS(__global, src + i)), __global, dst + i);
  if (n % VEC == 0) return;
  if (n >= VEC) {
    // The rest, and some before it once more.
    const int i = n - VEC;
    STORE_DSTS(converted(LOAD_SRCS(__global, src + i)), __global, dst + i);
    return;
  }
  for (int i = 0; i < n; ++i) {
    const V x = LOAD_SRC(src, i);
    STORE_DST(dst, i, x);
  }
}
#else
// Collected, converted in vectors, and put where they belong: elements lie anywhere.
void cast_tile(__global const SRC_BITS* src, __global DST_BITS* dst, int count0, int count1,
               long to0, long to1, long from0, long from1) {
  SRC_BITS taken[TILE];
  DST_BITS given[TILE];
  if (from0 <= from1)
    for (int j = 0; j < count1; ++j)
      for (int i = 0; i < count0; ++i) taken[j * count0 + i] = src[j * from1 + i * from0];
  else
    for (int i = 0; i < count0; ++i)
      for (int j = 0; j < count1; ++j) taken[j * count0 + i] = src[j * from1 + i * from0];
  for (int k = 0; k < count0 * count1; k += VEC)
    STORE_DSTS(converted(LOAD_SRCS(__private, taken + k)), __private, given + k);
  for (int j = 0; j < count1; ++j)
    for (int i = 0; i < count0; ++i) dst[j * to1 + i * to0] = given[j * count0 + i];
}
#endif

// device(cast_tiles): CPU
__kernel void cast_tiles(__global const SRC* src, __global DST* dst, ulong tiles, long dst_offset,
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
  const int count0 = (int)min(tile.s0, size[0] - first0);
  const int count1 = (int)min(tile.s1, size[1] - first1);
#if RUNS
  for (int j = 0; j < count1; ++j) cast_run(src + j * from[1], dst + j * to[1], count0);
#else
  cast_tile((__global const SRC_BITS*)src, (__global DST_BITS*)dst, count0, count1, to[0], to[1],
            from[0], from[1]);
#endif
}
