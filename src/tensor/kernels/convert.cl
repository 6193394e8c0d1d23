// What converting one element means, the same as on the host: integers saturate, NaN becomes 0,
// fractions are cut, bool is "not zero", floating values are rounded once to nearest even. Defines:
// SRC_<dtype> and DST_<dtype> (float16 bfloat16 float32 float64 int8 uint8 int32 int64 bool).

#if defined(SRC_float64) || defined(DST_float64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// V is what a loaded element is computed in.
#if defined(SRC_float16)
#define SRC half
#define V float
#define LOAD_SRC(p, i) vload_half(i, p)
#elif defined(SRC_bfloat16)
#define SRC ushort
#define V float
#define LOAD_SRC(p, i) as_float((uint)(p)[i] << 16)
#elif defined(SRC_float32)
#define SRC float
#define V float
#elif defined(SRC_float64)
#define SRC double
#define V double
#elif defined(SRC_int8)
#define SRC char
#define V char
#elif defined(SRC_int32)
#define SRC int
#define V int
#elif defined(SRC_int64)
#define SRC long
#define V long
#else
#define SRC uchar
#define V uchar
#endif
#ifndef LOAD_SRC
#define LOAD_SRC(p, i) (p)[i]
#endif

#if defined(SRC_float16) || defined(SRC_bfloat16) || defined(SRC_float32) || defined(SRC_float64)
#define IS_NAN(x) isnan(x)
#else
#define IS_NAN(x) 0
#endif

#if defined(DST_bfloat16)
ushort bfloat16_bits(float x) {
  const uint bits = as_uint(x);
  if (isnan(x)) return (ushort)((bits >> 16) | 0x40u);
  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#endif

#if defined(SRC_float64) && (defined(DST_bfloat16) || defined(DST_float16))
// Rounding to odd first: the second rounding then sees whether anything was cut off. Also for
// halves, because vstore_half_rte of a double beyond the floats stores NaN on Mesa's rusticl.
float narrowed(double x) {
  const float cut = convert_float_rtz(x);
  return isnan(x) || (double)cut == x ? cut : as_float(as_uint(cut) | 1u);
}
#else
#define narrowed(x) convert_float(x)
#endif

#if defined(DST_float16)
#define DST half
#define STORE_DST(p, i, x) vstore_half_rte(narrowed(x), i, p)
#elif defined(DST_bfloat16)
#define DST ushort
#define STORE_DST(p, i, x) (p)[i] = bfloat16_bits(narrowed(x))
#elif defined(DST_float32)
#define DST float
#define STORE_DST(p, i, x) (p)[i] = convert_float(x)
#elif defined(DST_float64)
#define DST double
#define STORE_DST(p, i, x) (p)[i] = convert_double(x)
#elif defined(DST_int8)
#define DST char
// By way of int: Mesa 25's llvmpipe ends the process at convert_char_sat of a float on some
// processors.
#define STORE_DST(p, i, x) (p)[i] = IS_NAN(x) ? (char)0 : convert_char_sat(convert_int_sat(x))
#elif defined(DST_uint8)
#define DST uchar
#define STORE_DST(p, i, x) (p)[i] = IS_NAN(x) ? (uchar)0 : convert_uchar_sat(x)
#elif defined(DST_int32)
#define DST int
#define STORE_DST(p, i, x) (p)[i] = IS_NAN(x) ? 0 : convert_int_sat(x)
#elif defined(DST_int64)
#define DST long
#define STORE_DST(p, i, x) (p)[i] = IS_NAN(x) ? 0L : convert_long_sat(x)
#else
#define DST uchar
#define STORE_DST(p, i, x) (p)[i] = (uchar)((x) != 0)
#endif
