// The numbers of random.cl on CPUs, bit for bit: a work-item owns `part` neighbouring elements, a
// multiple of those of a step, and makes the words of BLOCKS blocks at a time. Defines: those of
// random_values.cl and philox_vectors.cl; SRC_float32 and VEC for convert_vectors.cl, which rounds
// to the short types.

#include "tensor/kernels/philox_vectors.cl"
#include "tensor/kernels/random_values.cl"

#if defined(DST_float64)
#define DST_BITS double
#define STEP (WORDS_OF_BLOCKS / 2)
typedef double value_t;
#else
#define STEP WORDS_OF_BLOCKS
typedef float value_t;
#if defined(DST_float32)
#define DST_BITS float
#else
#include "tensor/kernels/convert_vectors.cl"
#endif
#endif

// Lookups in a table: vectors would gather, which takes longer than the lanes do.
#ifdef __clang__
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
#else
#define ONE_BY_ONE
#endif

// STEP elements from block `first` on.
void make_step(ulong first, uint2 key, DST_BITS* to) {
  uint words[WORDS_OF_BLOCKS];
  philox_blocks(first, key, words);
#if defined(DST_float64)
  for (int i = 0; i < STEP; ++i) to[i] = value_of(words[2 * i], words[2 * i + 1]);
#else
  value_t values[STEP];
#if NORMAL
  uint pieces[STEP];
  float places[STEP];
  for (int i = 0; i < STEP; ++i) pieces[i] = piece_of(words[i], places + i);
  ONE_BY_ONE
  for (int i = 0; i < STEP; ++i) values[i] = value_in(pieces[i], places[i], words[i]);
#else
  for (int i = 0; i < STEP; ++i) values[i] = value_of(words[i]);
#endif
#if defined(DST_float32)
  for (int i = 0; i < STEP; ++i) to[i] = values[i];
#else
  for (int i = 0; i < STEP; i += VEC)
    STORE_DSTS(converted(LOAD_SRCS(__private, values + i)), __private, to + i);
#endif
#endif
}

// device(random_runs): CPU
__kernel void random_runs(__global DST_BITS* dst, ulong n, ulong seed, ulong part) {
  const uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  ulong at = (ulong)get_global_id(0) * part;
  const ulong end = min(n, at + part);
  for (; at < end; at += STEP) {
    DST_BITS made[STEP];
    make_step(at / STEP * BLOCKS, key, made);
    const int count = (int)min(end - at, (ulong)STEP);
    if (count == STEP)
      for (int i = 0; i < STEP; ++i) dst[at + i] = made[i];
    else
      for (int i = 0; i < count; ++i) dst[at + i] = made[i];
  }
}
