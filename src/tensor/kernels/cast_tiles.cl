// Copies elements between two strided arrays of different dtypes on CPUs, a tile per work-item:
// cuts of axis 0, along which dst is walked, and of axis 1, so that whole lines of both are used
// while they are in the cache. Defines: those of convert_vectors.cl, RUNS (both sides are
// contiguous along axis 0), STREAMS (runs are written past the caches). tile: as in tile.cl.

#include "tensor/kernels/convert_vectors.cl"
#include "tensor/kernels/tile.cl"

#define TILE 1024  // elements, at most, of a tile without RUNS

#if STREAMS && defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_DSTS(v, p) __builtin_nontemporal_store(v, (__global DSTS*)(p))
#endif
#endif

#if RUNS
void cast_run(__global const SRC* src, __global DST* dst, int n) {
  int i = 0;
#ifdef STREAM_DSTS
  // Vectors that go past the caches must lie at multiples of their size.
  if (((ulong)dst & (sizeof(DSTS) - 1)) == 0)
    for (; i + VEC <= n; i += VEC) STREAM_DSTS(converted(LOAD_SRCS(__global, src + i)), dst + i);
#endif
  for (; i + VEC <= n; i += VEC)
    STORE_DSTS(converted(LOAD_SRCS(__global, src + i)), __global, dst + i);
  if (n % VEC == 0) return;
  if (n >= VEC) {
    // The rest, and some before it once more.
    i = n - VEC;
    STORE_DSTS(converted(LOAD_SRCS(__global, src + i)), __global, dst + i);
    return;
  }
  for (; i < n; ++i) {
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
  const long number = (long)get_global_id(0);
  if (number >= (long)tiles) return;
  long d = dst_offset, s = src_offset;
  const int2 count = begin_of_tile(number, sizes, dst_strides, src_strides, tile, &d, &s);
  dst += d;
  src += s;
#if RUNS
  for (int j = 0; j < count.s1; ++j)
    cast_run(src + j * src_strides.s1, dst + j * dst_strides.s1, count.s0);
#else
  cast_tile((__global const SRC_BITS*)src, (__global DST_BITS*)dst, count.s0, count.s1,
            dst_strides.s0, dst_strides.s1, src_strides.s0, src_strides.s1);
#endif
}
