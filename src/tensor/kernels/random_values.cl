// Random words as numbers, bit for bit as src/tensor/random.cpp makes them: value_of(word), of
// float64 value_of(word, next word). Defines: DST_<dtype> (float16 bfloat16 float32 float64),
// NORMAL (0 or 1).

#include "tensor/kernels/normal_table.cl"

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
// How far into its piece a word lies: 24 bits at most, so that the conversion is exact.
uint piece_of(uint word, float* t) {
  uint rest;
  int bits;
  const uint piece = place(word & 0x7fffffffu, &rest, &bits);
  const int drop = bits > 24 ? bits - 24 : 0;
  *t = (float)(rest >> drop) * power_of_two(drop - bits);
  return piece;
}

float value_in(uint piece, float t, uint word) {
  __constant const float* c = kNormalTable + 4u * piece;
  float value = c[3] * t;
  value = value + c[2];
  value = value * t;
  value = value + c[1];
  value = value * t;
  value = value + c[0];
  return (word >> 31) != 0u ? -value : value;
}

float value_of(uint word) {
  float t;
  const uint piece = piece_of(word, &t);
  return value_in(piece, t, word);
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
