// Counter-based random numbers (Philox 4x32-10), bit for bit as src/tensor/random.cpp makes them.
// One work-item owns one block of four words: four elements, or two of float64; the range is
// guarded. Defines: DST_<dtype> (float16 bfloat16 float32 float64), NORMAL (0 or 1).

#include "tensor/kernels/normal_table.cl"
#include "tensor/kernels/philox.cl"

// A fused multiply-add rounds differently: the bits would then depend on the device.
#pragma OPENCL FP_CONTRACT OFF
#if defined(DST_float64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Exact: a power of two as a float, from its exponent field.
float power_of_two(int exponent) { return as_float((uint)(127 + exponent) << 23); }

// The piece of the table a magnitude falls into; `rest` is how far into it, in `bits` bits.
uint place(uint magnitude, uint* rest, int* bits) {
  if (magnitude < 8u) {
    *rest = 0u;
    *bits = 0;
    return magnitude;
  }
  *bits = 28 - (int)clz(magnitude);
  *rest = magnitude & ((1u << *bits) - 1u);
  return 8u + (uint)*bits * 8u + ((magnitude >> *bits) & 7u);
}

#if defined(DST_float64)
typedef double V;
#if NORMAL
double value_of(uint word, uint low) {
  uint rest;
  int bits;
  __constant const float* c = kNormalTable + 4u * place(word & 0x7fffffffu, &rest, &bits);
  const double t = ((double)rest + (double)low * 0x1p-32) * (double)power_of_two(-bits);
  double value = (double)c[3] * t;
  value = value + (double)c[2];
  value = value * t;
  value = value + (double)c[1];
  value = value * t;
  value = value + (double)c[0];
  return (word >> 31) != 0u ? -value : value;
}
#else
double value_of(uint word, uint low) {
  return (double)(((ulong)(word >> 5) << 26) | (ulong)(low >> 6)) * 0x1p-53;
}
#endif
#elif NORMAL
float value_of(uint word) {
  uint rest;
  int bits;
  __constant const float* c = kNormalTable + 4u * place(word & 0x7fffffffu, &rest, &bits);
  const int drop = bits > 24 ? bits - 24 : 0;
  const float t = (float)(rest >> drop) * power_of_two(drop - bits);
  float value = c[3] * t;
  value = value + c[2];
  value = value * t;
  value = value + c[1];
  value = value * t;
  value = value + c[0];
  return (word >> 31) != 0u ? -value : value;
}
#else
// No more bits than the type keeps: rounding up could otherwise give 1.
#if defined(DST_float16)
#define BITS 11
#elif defined(DST_bfloat16)
#define BITS 8
#else
#define BITS 24
#endif
float value_of(uint word) { return (float)(word >> (32 - BITS)) * power_of_two(-BITS); }
#endif

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
