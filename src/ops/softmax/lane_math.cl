// What is done to the lanes of a vector: folds, parts of one, exp. Defines: T, ACC, those of
// vector_macros and lane_macros (ops/softmax/rows.h).

#define PLUS(a, b) ((a) + (b))
// NaN may get lost here: those who need it find it in the sums.
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

#define OR(a, b) ((a) | (b))

// Lanes joined until four are left.
#define JOIN_NAMES(a, b) a##b
#define VECTOR_OF(type, n) JOIN_NAMES(type, n)
#if VEC == 16
#define QUARTET_OF(type, v, OP)                 \
  const VECTOR_OF(type, 8) v8 = OP(v.lo, v.hi); \
  const VECTOR_OF(type, 4) v4 = OP(v8.lo, v8.hi)
#elif VEC == 8
#define QUARTET_OF(type, v, OP) const VECTOR_OF(type, 4) v4 = OP(v.lo, v.hi)
#else
#define QUARTET_OF(type, v, OP) const VECTOR_OF(type, 4) v4 = v
#endif
#define QUARTET(v, OP) QUARTET_OF(ACC, v, OP)
#define FOLD(v, OP)                 \
  QUARTET(v, OP);                   \
  const ACC2 v2 = OP(v4.lo, v4.hi); \
  return OP(v2.x, v2.y)

ACC sum_lanes(ACCV v) { FOLD(v, PLUS); }
ACC largest_lane(ACCV v) { FOLD(v, LARGER); }
// Of a comparison: whether it holds in some lane.
int any_lane(LANEV v) {
  QUARTET_OF(LANE, v, OR);
  return (v4.x | v4.y | v4.z | v4.w) != 0;
}

// `v` in the last `count` lanes, or in the first; `other` in the rest.
ACCV last_lanes(ACCV v, ACCV other, long count) {
  return LANES >= (LANEV)(VEC - count) ? v : other;
}
ACCV first_lanes(ACCV v, ACCV other, long count) { return LANES < (LANEV)count ? v : other; }

// The n < VEC elements at p; `other` in the lanes behind them.
ACCV load_few(__global const T* p, long n, ACC other) {
  ACC lanes[VEC];
  STORE_LANES((ACCV)other, lanes);
  for (long l = 0; l < n; ++l) lanes[l] = LOAD_T(p, l);
  return VLOAD(0, lanes);
}
void store_few(ACCV v, __global T* p, long n) {
  ACC lanes[VEC];
  STORE_LANES(v, lanes);
  for (long l = 0; l < n; ++l) STORE_T(p, l, lanes[l]);
}

// exp to one ulp; NaN stays, what is below the normal numbers becomes 0. x = k log 2 + r and a
// polynomial for exp(r), because libraries take vectors apart.
#ifdef FLOATS
ACCV exp_vector(ACCV x) {
  x = x > (ACCV)89.0f ? (ACCV)89.0f : x;
  x = x < (ACCV)-87.3f ? (ACCV)-87.4f : x;
  // Adding 3 * 2^22 leaves no room for fractions: the lowest bits are k.
  const ACCV shifted = fma(x, (ACCV)1.44269504f, (ACCV)12582912.0f), k = shifted - 12582912.0f;
  const ACCV r = fma(k, (ACCV)-1.42860677e-6f, fma(k, (ACCV)-0.693145751953125f, x));
  ACCV p = fma((ACCV)0.0013814318f, r, (ACCV)0.008368852f);
  p = fma(p, r, (ACCV)0.0416684f);
  p = fma(p, r, (ACCV)0.1666652f);
  p = fma(p, r, (ACCV)0.49999994f);
  p = fma(p, r * r, r) + (ACCV)1.0f;
  // 2^(k - 1), then 2: the largest k has no float of its own.
  return p * AS_ACCV((AS_LANES(shifted) - (0x4b400000 - 126)) << 23) * (ACCV)2.0f;
}
#else
#define exp_vector(x) exp(x)
#endif
