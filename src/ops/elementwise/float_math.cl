// Functions of floats without branches, which compilers make vectors of: the libraries of OpenCL
// drivers and of C++ take vectors apart, or have none. The same text for both languages, for one
// element or for a vector of them. Two or three units in the last place; NaN stays NaN, results
// below the normal numbers are kept, but by erfc. Defines: FUNCTION (what a function begins with),
// FN(name) (what it is called), FV and IV (float and int, or vectors), AS_FV and AS_IV (the same
// bits as the other type), FMA(x, y, z) (x y + z, rounded once or twice), SQUARE_REST(x, s) (x x -
// s, exactly), FLOATS_OF (of integers).

// 2^e for -126 <= e <= 127.
#define POWER_OF_TWO(e) AS_FV(((e) + 127) << 23)
#define MAGNITUDE(x) AS_FV(AS_IV(x) & 0x7fffffff)
#define SIGN_OF(x) (AS_IV(x) & (-2147483647 - 1))
// Each one instruction; NaN stays.
#define AT_MOST(x, high) ((x) > (FV)(high) ? (FV)(high) : (x))
#define AT_LEAST(x, low) ((x) < (FV)(low) ? (FV)(low) : (x))

// x = k log(2) + r with |r| <= log(2) / 2. Adding 3 * 2^22 leaves no room for fractions: the lowest
// bits of `shifted` are k.
#define REDUCED(x, shifted, k, r)                              \
  const FV shifted = FMA(x, (FV)1.44269504f, (FV)12582912.0f); \
  const FV k = shifted - (FV)12582912.0f;                      \
  const FV r = FMA(k, (FV)-1.42860677e-6f, FMA(k, (FV)-0.693145751953125f, x))
#define EXPONENT(shifted) (AS_IV(shifted) - 0x4b400000)

// exp(r) - 1 of a reduced r.
FUNCTION FV FN(expm1_near)(FV r) {
  FV p = FMA((FV)1.38825e-3f, r, (FV)8.36669e-3f);
  p = FMA(p, r, (FV)4.166721e-2f);
  p = FMA(p, r, (FV)1.6666542e-1f);
  p = FMA(p, r, (FV)4.9999998e-1f);
  return FMA(r * r, p, r);
}

FUNCTION FV FN(exp)(FV x) {
  const FV below = AT_MOST(x, 89.5f), inside = AT_LEAST(below, -104.5f);
  REDUCED(inside, shifted, k, r);
  // In two steps: neither the largest nor the smallest results have a factor of their own.
  const IV e = EXPONENT(shifted), half_e = e >> 1;
  return (FN(expm1_near)(r) + (FV)1.0f) * POWER_OF_TWO(half_e) * POWER_OF_TWO(e - half_e);
}

FUNCTION FV FN(expm1)(FV x) {
  const FV below = AT_MOST(x, 89.0f), inside = AT_LEAST(below, -87.0f);
  REDUCED(inside, shifted, k, r);
  // 2^(k - 1), then 2: the largest k has no float of its own.
  const FV scale = POWER_OF_TWO(EXPONENT(shifted) - 1);
  return FMA(FN(expm1_near)(r), scale, scale - (FV)0.5f) * (FV)2.0f;
}

FUNCTION FV FN(tanh)(FV x) {
  const FV below = AT_MOST(x, 10.0f), twice = AT_LEAST(below, -10.0f) * (FV)2.0f;
  REDUCED(twice, shifted, k, r);
  // expm1(2 x), which lies within the floats here.
  const FV scale = POWER_OF_TWO(EXPONENT(shifted));
  const FV e = FMA(FN(expm1_near)(r), scale, scale - (FV)1.0f);
  return e / (e + (FV)2.0f);
}

// log(1 + x) with u = 1 + x = 2^k (1 + f) and 1 / sqrt(2) < 1 + f < sqrt(2); what the rounding of u
// cut off is added to f.
FUNCTION FV FN(log1p)(FV x) {
  const FV u = x + (FV)1.0f;
  const FV cut = x - (u - (FV)1.0f);
  const IV above = AS_IV(MAGNITUDE(u)) - 0x3f3504f3, e = above >> 23,
           least = e > (IV)126 ? (IV)126 : e;
  const FV k = FLOATS_OF(e);
  const FV f = FMA(cut, POWER_OF_TWO(-least), AS_FV((above & 0x007fffff) + 0x3f3504f3) - (FV)1.0f);
  FV p = FMA((FV)-7.646038e-2f, f, (FV)1.2779088e-1f);
  p = FMA(p, f, (FV)-1.3164199e-1f);
  p = FMA(p, f, (FV)1.41997e-1f);
  p = FMA(p, f, (FV)-1.6622764e-1f);
  p = FMA(p, f, (FV)2.0001292e-1f);
  p = FMA(p, f, (FV)-2.5000838e-1f);
  p = FMA(p, f, (FV)3.3333331e-1f);
  const FV square = f * f;
  FV y = FMA(f * square, p, k * (FV)1.42860677e-6f);
  y = FMA(square, (FV)-0.5f, y);
  y = FMA(k, (FV)0.693145751953125f, f + y);
  y = u == (FV)INFINITY ? u : y;
  return x > (FV)-1.0f ? y : (x == (FV)-1.0f ? (FV)-INFINITY : (FV)NAN);
}

// exp(-x x) t times a polynomial in t = 1 / (1 + 0.3 x), for the whole tail; the square in two
// parts, because exp makes an error of it as many times as large as it is. From 9.375 on the result
// is 0: the exponent becomes that of zero.
FUNCTION FV FN(erfc)(FV x) {
  const FV size = MAGNITUDE(x), a = AT_MOST(size, 9.375f);
  const FV t = (FV)1.0f / FMA((FV)0.3f, a, (FV)1.0f), z = t - (FV)0.5f;
  FV p = FMA((FV)-1.295468455e-1f, z, (FV)-3.249845242e-2f);
  p = FMA(p, z, (FV)2.805222315e-1f);
  p = FMA(p, z, (FV)6.534318784e-1f);
  p = FMA(p, z, (FV)9.112836108e-1f);
  p = FMA(p, z, (FV)9.497338340e-1f);
  p = FMA(p, z, (FV)7.951260710e-1f);
  p = FMA(p, z, (FV)5.530472409e-1f);
  p = FMA(p, z, (FV)3.249799177e-1f);
  const FV square = a * a, rest = SQUARE_REST(a, square), down = -square;
  REDUCED(down, shifted, k, r);
  const FV scale = POWER_OF_TWO(EXPONENT(shifted)) * t;
  p = FMA(-p, rest, p);
  const FV y = FMA(FN(expm1_near)(r), scale, scale) * p;
  return x < (FV)0.0f ? (FV)2.0f - y : y;
}

// 1 - exp(-a q(a)), where a q(a) = -log(erfc(a)).
FUNCTION FV FN(erf)(FV x) {
  const FV size = MAGNITUDE(x), a = AT_MOST(size, 4.0f);
  // In halves, which do not wait for each other.
  FV q = FMA((FV)-9.25634840e-06f, a, (FV)1.17641975e-04f);
  q = FMA(q, a, (FV)-6.32839218e-04f);
  q = FMA(q, a, (FV)1.66703150e-03f);
  q = FMA(q, a, (FV)-1.60399798e-04f);
  FV p = FMA((FV)-1.91530621e-02f, a, (FV)1.02777830e-01f);
  p = FMA(p, a, (FV)6.36619382e-01f);
  p = FMA(p, a, (FV)1.12837917e+00f);
  const FV square = a * a;
  q = FMA(q, square * square, p);
  const FV inside = -a * q;
  REDUCED(inside, shifted, k, r);
  const FV scale = POWER_OF_TWO(EXPONENT(shifted));
  const FV y = FMA(-FN(expm1_near)(r), scale, (FV)1.0f - scale);
  return AS_FV(AS_IV(y) | SIGN_OF(x));
}
