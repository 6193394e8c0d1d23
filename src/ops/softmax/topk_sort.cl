// topk of rows (inner = 1) for CPUs where k is large: the elements become keys, of which a smaller
// one comes first. Counting their highest digits gives all that may be among the best; those are
// sorted by their digits, the lowest first, which leaves equals in their order. A work-item owns
// every `items`-th row and works in `scratch`, SCRATCH bytes per element of a row.
// Defines: T, ACC, LARGEST (0 or 1), LOWEST of ACC, FLOATING where there are NaNs, KEY: the
// unsigned integer of the size of ACC, AS_KEY(v), BITS of it.
// device(topk_sort): CPU

#include "ops/softmax/topk_order.cl"

#define DIGIT 8
#define DIGITS (BITS / DIGIT)
#define VALUES (1 << DIGIT)
#define HIGH 11  // bits that are counted first
#define HIGH_VALUES (1 << HIGH)

KEY key_of(ACC v) {
  const KEY sign = (KEY)1 << (BITS - 1);
#ifdef FLOATING
  if (v != v) return LARGEST ? 0 : ~(KEY)0;
  const KEY bits = AS_KEY(v == (ACC)0 ? (ACC)0 : TURNED(v));
  return (bits & sign) != 0 ? bits : ~(bits | sign);
#else
  return ~(AS_KEY(TURNED(v)) ^ sign);
#endif
}

// Sorts m keys with their places, from one half of the scratch to the other and back; 0 or 1: where
// they are in the end.
int sort_keys(__global KEY* keys, __global int* places, long n, int m) {
  int counts[DIGITS][VALUES];
  for (int d = 0; d < DIGITS; ++d)
    for (int v = 0; v < VALUES; ++v) counts[d][v] = 0;
  for (int i = 0; i < m; ++i) {
    const KEY key = keys[i];
    for (int d = 0; d < DIGITS; ++d) ++counts[d][key >> (d * DIGIT) & (VALUES - 1)];
  }
  int half_now = 0;
  for (int d = 0; d < DIGITS; ++d) {
    __global const KEY* from = keys + half_now * n;
    __global const int* from_places = places + half_now * n;
    if (counts[d][from[0] >> (d * DIGIT) & (VALUES - 1)] == m) continue;  // all alike
    half_now = 1 - half_now;
    __global KEY* to = keys + half_now * n;
    __global int* to_places = places + half_now * n;
    int before = 0;
    for (int v = 0; v < VALUES; ++v) {
      const int count = counts[d][v];
      counts[d][v] = before;
      before += count;
    }
    for (int i = 0; i < m; ++i) {
      const KEY key = from[i];
      const int at = counts[d][key >> (d * DIGIT) & (VALUES - 1)]++;
      to[at] = key, to_places[at] = from_places[i];
    }
  }
  return half_now;
}

__kernel void topk_sort(__global const T* x, __global T* values, __global long* indices,
                        __global uchar* scratch, long8 at, long outer, long n, long k, long items) {
  x += at.s0, values += at.s1, indices += at.s2, scratch += at.s3;
  __global KEY* keys = (__global KEY*)(scratch + (long)get_global_id(0) * n * SCRATCH);
  __global int* places = (__global int*)(keys + 2 * n);
  for (long row = get_global_id(0); row < outer; row += items) {
    __global const T* xs = x + row * n;
    int counts[HIGH_VALUES];
    for (int v = 0; v < HIGH_VALUES; ++v) counts[v] = 0;
    for (long i = 0; i < n; ++i) {
      const KEY key = key_of(LOAD_T(xs, i));
      keys[n + i] = key;
      ++counts[key >> (BITS - HIGH)];
    }
    KEY last = 0;
    for (int so_far = counts[0]; so_far < k; so_far += counts[last]) ++last;
    int m = 0;
    for (long i = 0; i < n; ++i) {
      const KEY key = keys[n + i];
      keys[m] = key, places[m] = (int)i;
      m += key >> (BITS - HIGH) <= last;
    }
    const int sorted = sort_keys(keys, places, n, m);
    for (long j = 0; j < k; ++j) {
      const int place = places[sorted * n + j];
      STORE_T(values, row * k + j, LOAD_T(xs, place));
      indices[row * k + j] = place;
    }
  }
}
