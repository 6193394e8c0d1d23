// Counter-based random numbers (Philox 4x32-10). One work-item owns one block of four words: four
// elements, or two of float64; the range is guarded. Defines: those of random_values.cl.

#include "tensor/kernels/philox.cl"
#include "tensor/kernels/random_values.cl"

#if defined(DST_float16)
#define DST half
#define STORE_DST(p, i, x) vstore_half_rte(x, i, p)
#elif defined(DST_bfloat16)
#define DST ushort
#define STORE_DST(p, i, x) \
  (p)[i] = (ushort)((as_uint(x) + 0x7fffu + ((as_uint(x) >> 16) & 1u)) >> 16)
#elif defined(DST_float64)
#define DST double
#else
#define DST float
#endif
#ifndef STORE_DST
#define STORE_DST(p, i, x) (p)[i] = x
#endif

void store_block(__global DST* dst, ulong n, ulong block, uint2 key) {
  const uint4 words = philox((uint4)((uint)block, (uint)(block >> 32), 0u, 0u), key);
#if defined(DST_float64)
  const ulong first = block * 2;
  if (first < n) STORE_DST(dst, first, value_of(words.x, words.y));
  if (first + 1 < n) STORE_DST(dst, first + 1, value_of(words.z, words.w));
#else
  const ulong first = block * 4;
  if (first < n) STORE_DST(dst, first, value_of(words.x));
  if (first + 1 < n) STORE_DST(dst, first + 1, value_of(words.y));
  if (first + 2 < n) STORE_DST(dst, first + 2, value_of(words.z));
  if (first + 3 < n) STORE_DST(dst, first + 3, value_of(words.w));
#endif
}

// coalescing(random): neighbouring items write neighbouring blocks of four elements; the four
// stores of a warp fill whole lines.
__kernel void random(__global DST* dst, ulong n, ulong seed) {
  const uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  ulong block = (ulong)get_group_id(0) * get_local_size(0) * ITEMS + get_local_id(0);
  for (int item = 0; item < ITEMS; ++item, block += get_local_size(0))
    store_block(dst, n, block, key);
}
