// The conversions of convert.cl for vectors of VEC elements: converted(LOAD_SRCS(space, p)).
// Defines: those of convert.cl, VEC.

#include "tensor/kernels/convert.cl"

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define VECTOR(type) JOINED(type, VEC)
#define CONVERT(type) JOINED(convert_, VECTOR(type))
#define AS(type) JOINED(as_, VECTOR(type))

// Elements as they lie in memory: halves as bits, of which no variables may be made.
#if defined(SRC_float16)
#define SRC_BITS ushort
#else
#define SRC_BITS SRC
#endif
#if defined(DST_float16)
#define DST_BITS ushort
#else
#define DST_BITS DST
#endif
#define SRCS VECTOR(SRC_BITS)
#define DSTS VECTOR(DST_BITS)
#define VV VECTOR(V)

// Vectors wherever they lie, in the address space `space`. PoCL's vloads of 16 elements are put
// together from pairs.
#ifdef POCL_DEVICE_ADDRESS_BITS
typedef SRCS __attribute__((aligned(sizeof(SRC_BITS)))) loose_srcs;
typedef DSTS __attribute__((aligned(sizeof(DST_BITS)))) loose_dsts;
#define LOAD_SRCS(space, p) (*(space const loose_srcs*)(p))
#define STORE_DSTS(v, space, p) (*(space loose_dsts*)(p) = (v))
#else
#define LOAD_SRCS(space, p) JOINED(vload, VEC)(0, (space const SRC_BITS*)(p))
#define STORE_DSTS(v, space, p) JOINED(vstore, VEC)(v, 0, (space DST_BITS*)(p))
#endif

#if defined(SRC_float16)
VV loaded(SRCS bits) { return JOINED(vload_half, VEC)(0, (const half*)&bits); }
#elif defined(SRC_bfloat16)
VV loaded(SRCS bits) { return AS(float)(CONVERT(uint)(bits) << 16); }
#else
VV loaded(SRCS x) { return x; }
#endif

// ---- conversions of x, a VV
#if defined(SRC_float16) || defined(SRC_bfloat16) || defined(SRC_float32) || defined(SRC_float64)
#define FROM_FLOATS
#endif
#if defined(DST_int8)
#define LOW -128
#define HIGH 127
#elif defined(DST_uint8)
#define LOW 0
#define HIGH 255
#elif defined(DST_int32)
#define LOW INT_MIN
#define HIGH INT_MAX
#elif defined(DST_int64)
#define LOW LONG_MIN
#define HIGH LONG_MAX
#endif

#if defined(DST_float16) || defined(DST_bfloat16)
VECTOR(float) narrowed_lanes(VV x) {
#if defined(SRC_float64)
  // Rounding to odd first, as `narrowed`: towards zero, and the last bit says that something is
  // missing.
  const VECTOR(float) near = CONVERT(float)(x);
  const VV back = CONVERT(double)(near);
  const VECTOR(int) far = CONVERT(int)(fabs(back) > fabs(x));
  const VECTOR(int) inexact = CONVERT(int)((back != x) & (x == x));
  return AS(float)((AS(int)(near) + far) | (inexact & 1));
#else
  return CONVERT(float)(x);
#endif
}
#endif

#if defined(DST_float16)
DSTS stored(VV x) {
  DSTS bits;
  JOINED(JOINED(vstore_half, VEC), _rte)(narrowed_lanes(x), 0, (half*)&bits);
  return bits;
}
#elif defined(DST_bfloat16)
DSTS stored(VV x) {
  const VECTOR(float) value = narrowed_lanes(x);
  const VECTOR(uint) bits = AS(uint)(value), upper = bits >> 16;
  return CONVERT(ushort)(value == value ? (bits + 0x7fffu + (upper & 1u)) >> 16 : upper | 0x40u);
}
#elif defined(DST_float32) || defined(DST_float64)
DSTS stored(VV x) { return CONVERT(DST)(x); }
#elif !defined(LOW)
DSTS stored(VV x) { return CONVERT(uchar)((x != (VV)0) & (char)1); }
#elif defined(FROM_FLOATS)
// What a conversion takes is inside of the type: the floating value below HIGH, where HIGH itself
// is none, and HIGH where that was not enough.
#if defined(SRC_float64)
#define IS_NUMBER(x) ((x) == (x))
#else
// Of the bits: LLVM compares halves themselves otherwise, one by one.
#define IS_NUMBER(x) ((AS(int)(x) & INT_MAX) <= 0x7f800000)
#endif
#if defined(DST_int64) && defined(SRC_float64)
#define BETWEEN long
#define BELOW_HIGH 0x1.fffffffffffffp62
#elif defined(DST_int64)
#define BETWEEN long
#define BELOW_HIGH 0x1.fffffep62f
#elif defined(DST_int32) && !defined(SRC_float64)
#define BETWEEN int
#define BELOW_HIGH 0x1.fffffep30f
#else
#define BETWEEN int
#endif
DSTS stored(VV x) {
#if defined(BELOW_HIGH)
  const V high = BELOW_HIGH;
#else
  const V high = HIGH;
#endif
  VV inside = x < (VV)(V)LOW ? (VV)(V)LOW : x;
  inside = inside > (VV)high ? (VV)high : inside;
  inside = IS_NUMBER(x) ? inside : (VV)0;
  VECTOR(BETWEEN) result = CONVERT(BETWEEN)(inside);
#if defined(BELOW_HIGH)
  result = CONVERT(BETWEEN)(x > (VV)high) ? (VECTOR(BETWEEN))HIGH : result;
#endif
  return CONVERT(DST)(result);
}
#else
#if defined(DST_uint8) && defined(SRC_int8)
#define INSIDE(x) max(x, (VV)0)
#elif defined(DST_int8) && (defined(SRC_uint8) || defined(SRC_bool))
#define INSIDE(x) min(x, (VV)HIGH)
#elif defined(SRC_int64) || (defined(SRC_int32) && !defined(DST_int64))
#define INSIDE(x) min(max(x, (VV)LOW), (VV)HIGH)
#else
#define INSIDE(x) (x)
#endif
DSTS stored(VV x) { return CONVERT(DST)(INSIDE(x)); }
#endif

DSTS converted(SRCS x) { return stored(loaded(x)); }
