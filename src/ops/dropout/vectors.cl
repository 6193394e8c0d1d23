// dropout.cl on CPUs, the same numbers: a work-item owns `part` neighbouring elements, a multiple
// of those of BLOCKS blocks of words. Words below `least` drop their element. Defines: T, ACC,
// those of vector_macros, STOREV(v, p), KEPT(words) (whether the lanes of a vector of words keep
// theirs, in lanes of ACC's size), BLOCKS.

#include "tensor/kernels/philox_vectors.cl"

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)

// device(dropout_vectors): CPU
__kernel void dropout_vectors(__global const T* x, __global T* y, long8 at, ulong n, ulong seed,
                              ulong part, uint least, ACC scale) {
  const uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  ulong i = (ulong)get_global_id(0) * part;
  const ulong end = min(n, i + part);
  x += at.s0;
  y += at.s1;
  for (; i < end; i += WORDS_OF_BLOCKS) {
    uint words[WORDS_OF_BLOCKS];
    philox_blocks(i / 4, key, words);
    const int count = (int)min(end - i, (ulong)WORDS_OF_BLOCKS);
    if (count == WORDS_OF_BLOCKS)
      for (int j = 0; j < WORDS_OF_BLOCKS; j += VEC) {
        const ACCV kept = LOADV(x, i + j) * (ACCV)scale;
        STOREV(KEPT(JOINED(vload, VEC)(0, words + j)) ? kept : (ACCV)0, y + i + j);
      }
    else
      for (int j = 0; j < count; ++j)
        STORE_T(y, i + j, words[j] >= least ? (ACC)LOAD_T(x, i + j) * scale : (ACC)0);
  }
}
