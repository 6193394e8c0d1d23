// y = x * scale where the random word of the element is at least `threshold`, else 0. A work-item
// owns one block of Philox words, four elements; the range is guarded. Defines: T, ACC, LOAD_T,
// STORE_T.

#include "tensor/kernels/philox.cl"

__kernel void dropout(__global const T* x, __global T* y, long8 at, ulong n, ulong seed,
                      ulong threshold, ACC scale) {
  const ulong block = get_global_id(0), first = block * 4;
  if (first >= n) return;
  x += at.s0;
  y += at.s1;
  const uint4 words = philox((uint4)((uint)block, (uint)(block >> 32), 0u, 0u),
                             (uint2)((uint)seed, (uint)(seed >> 32)));
  const uint word[4] = {words.x, words.y, words.z, words.w};
  for (ulong i = first; i < min(first + 4, n); ++i) {
    const ACC value = (ulong)word[i - first] >= threshold ? (ACC)LOAD_T(x, i) * scale : (ACC)0;
    STORE_T(y, i, value);
  }
}
