// y = x * scale where the random word of the element is at least `threshold`, else 0. A work-item
// owns one block of Philox words, four elements; the range is guarded. Defines: T, ACC, LOAD_T,
// STORE_T.

#include "tensor/kernels/philox.cl"

#define KEPT(word, i) ((ulong)(word) >= threshold ? (ACC)LOAD_T(x, i) * scale : (ACC)0)

// coalescing(dropout): neighbouring items own neighbouring blocks of four elements; four loads and
// stores of a warp cover whole lines.
__kernel void dropout(__global const T* x, __global T* y, long8 at, ulong n, ulong seed,
                      ulong threshold, ACC scale) {
  const ulong block = get_global_id(0), first = block * 4;
  if (first >= n) return;
  x += at.s0;
  y += at.s1;
  const uint4 words = philox((uint4)((uint)block, (uint)(block >> 32), 0u, 0u),
                             (uint2)((uint)seed, (uint)(seed >> 32)));
  // Unrolled: an array of words with a variable index would live in memory.
  if (first + 4 <= n) {
    STORE_T(y, first, KEPT(words.x, first));
    STORE_T(y, first + 1, KEPT(words.y, first + 1));
    STORE_T(y, first + 2, KEPT(words.z, first + 2));
    STORE_T(y, first + 3, KEPT(words.w, first + 3));
    return;
  }
  STORE_T(y, first, KEPT(words.x, first));
  if (first + 1 < n) STORE_T(y, first + 1, KEPT(words.y, first + 1));
  if (first + 2 < n) STORE_T(y, first + 2, KEPT(words.z, first + 2));
}
