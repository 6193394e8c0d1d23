// Fills `bytes` bytes with a pattern of eight on CPUs, a part per work-item. Defines: LONGEST (64
// or 32, bytes of the vectors), STREAMS (written past the caches where the start lies at a multiple
// of LONGEST).

#include "tensor/kernels/stream.cl"

#if LONGEST == 64
typedef ulong8 pattern_vector;
#else
typedef ulong4 pattern_vector;
#endif
typedef pattern_vector __attribute__((aligned(1))) loose_pattern;

// device(fill_parts): CPU
__kernel void fill_parts(__global uchar* dst, ulong offset, ulong bytes, ulong part,
                         ulong pattern) {
  const ulong first = get_global_id(0) * part;
  if (first >= bytes) return;
  const int n = (int)min(part, bytes - first);
  global uchar* to = dst + offset + first;
  const pattern_vector v = (pattern_vector)(pattern);
  int i = 0;
#if STREAMS
  if (((size_t)to & (LONGEST - 1)) == 0)
    for (; i + LONGEST <= n; i += LONGEST) STREAM(v, (global pattern_vector*)(to + i));
#endif
  for (; i + LONGEST <= n; i += LONGEST) *(global loose_pattern*)(to + i) = v;
  for (; i < n; ++i) to[i] = (uchar)(pattern >> (i % 8 * 8));
}
