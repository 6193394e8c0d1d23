// Sums, products, largest and smallest of x (outer, reduced, inner) in vectors, for CPUs, where
// elements are as long as sums. The kernels are those of reduce.cl with one more number:
//   reduce_rows     inner = 1: a work-item owns `block` rows, or a part of one; short ones VEC at
//                   a time
//   reduce_columns  inner > 1: a work-item owns a part of up to STRIP neighbouring results; with
//                   few of them, `joined` rows are taken as one
// Defines: those of reduce.cl and of row_macros (ops/softmax/rows.h), STRIP.

#include "ops/reduction/states.cl"
#include "ops/softmax/vectors.cl"

#define BLOCK 128
#define SHORT (16 * VEC)  // rows that are put together to vectors of results
// As PUSH, for vectors.
#if defined(KIND_MAX)
#define PUSHV(s, v) ((((s) != (s)) | ((s) > (v))) ? (s) : (v))
#elif defined(KIND_MIN)
#define PUSHV(s, v) ((((s) != (s)) | ((s) < (v))) ? (s) : (v))
#else
#define PUSHV(s, v) COMBINE(s, v)
#endif

// Four vectors join four sums. The largest and smallest of floating numbers are taken without a
// look at NaN (one instruction), which is told of in `nan` for two at a time.
#if defined(FLOATING) && (defined(KIND_MAX) || defined(KIND_MIN))
#ifdef KIND_MAX
#define EXTREME(v, s) ((v) > (s) ? (v) : (s))
#else
#define EXTREME(v, s) ((v) < (s) ? (v) : (s))
#endif
#define PUSH_FOUR(v0, v1, v2, v3)             \
  s0 = EXTREME(v0, s0), s1 = EXTREME(v1, s1); \
  s2 = EXTREME(v2, s2), s3 = EXTREME(v3, s3); \
  nan |= ((v0 != v0) | (v1 != v1)) | ((v2 != v2) | (v3 != v3))
#define AND_NAN(s) (nan ? (ACCV)(ACC)NAN : (s))
#else
#define PUSH_FOUR(v0, v1, v2, v3)                                                 \
  s0 = PUSHV(s0, v0), s1 = PUSHV(s1, v1), s2 = PUSHV(s2, v2), s3 = PUSHV(s3, v3); \
  (void)nan
#define AND_NAN(s) (s)
#endif

ACC fold_lanes(ACCV v) {
  QUARTET(v, PUSHV);
  const ACC2 v2 = PUSHV(v4.lo, v4.hi);
  return COMBINE(v2.x, v2.y);
}

ACC reduce_run(__global const T* x, long n) {
  if (n < VEC) {
    ACC s = IDENTITY;
    for (long i = 0; i < n; ++i) s = PUSH(s, LOAD_T(x, i), i);
    return s;
  }
  const ACCV start = (ACCV)(IDENTITY);
  ACCV total = start;
  LANEV nan = (LANEV)0;
  // Four places at once: memory answers faster to several streams than to one.
  const long quarter = n / (4 * VEC) * VEC;
  __global const T *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
  long i = 0;
  while (i < quarter) {
    const long end = min(quarter, i + (long)BLOCK * VEC);
    ACCV s0 = start, s1 = start, s2 = start, s3 = start;
    for (; i < end; i += VEC) {
      FETCH(x + i + FETCH_AHEAD / 2);
      FETCH(x1 + i + FETCH_AHEAD / 2);
      FETCH(x2 + i + FETCH_AHEAD / 2);
      FETCH(x3 + i + FETCH_AHEAD / 2);
      const ACCV v0 = LOADV(x, i), v1 = LOADV(x1, i), v2 = LOADV(x2, i), v3 = LOADV(x3, i);
      PUSH_FOUR(v0, v1, v2, v3);
    }
    s0 = PUSHV(s0, s1);
    s2 = PUSHV(s2, s3);
    s0 = PUSHV(s0, s2);
    total = PUSHV(total, s0);
  }
  total = AND_NAN(total);
  i = 4 * quarter;
  for (; i + VEC <= n; i += VEC) total = PUSHV(total, LOADV(x, i));
  if (HAS_REST) {
    const ACCV rest = last_lanes(LOADV(x, REST), start, n % VEC);
    total = PUSHV(total, rest);
  }
  return fold_lanes(total);
}

// VEC rows of n elements, lane l that of row l: a vector per row, of which pairs of neighbouring
// lanes are joined until one is left of each. Up to VEC elements behind the last row are read.
ACCV reduce_short(__global const T* x, long n) {
  const ACCV start = (ACCV)(IDENTITY);
  ACCV s[VEC];
#pragma unroll
  for (int r = 0; r < VEC; ++r) {
    __global const T* xs = x + r * n;
    ACCV all = start;
    for (long i = 0; i + VEC <= n; i += VEC) all = PUSHV(all, LOADV(xs, i));
    if (n < VEC)
      all = first_lanes(LOADV(xs, 0), start, n);
    else if (HAS_REST) {
      const ACCV rest = last_lanes(LOADV(xs, REST), start, n % VEC);
      all = PUSHV(all, rest);
    }
    s[r] = all;
  }
#pragma unroll
  for (int left = VEC / 2; left > 0; left /= 2) {
#pragma unroll
    for (int r = 0; r < left; ++r) {
      ACCV even, odd;
      even.lo = s[2 * r].even, even.hi = s[2 * r + 1].even;
      odd.lo = s[2 * r].odd, odd.hi = s[2 * r + 1].odd;
      s[r] = PUSHV(even, odd);
    }
  }
  return s[0];
}

__kernel void reduce_rows(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                          long outer, long reduced, long parts, ACC correction, long block) {
  x += at.s0, y += at.s1;
  const long id = get_global_id(0);
  if (parts > 1) {
    const long part = id % parts, chunk = (reduced + parts - 1) / parts;
    const long first = min(reduced, part * chunk), last = min(reduced, first + chunk);
    states[id] = reduce_run(x + id / parts * reduced + first, last - first);
    return;
  }
  BLOCK_OF(outer);
  if (reduced > 0 && reduced < SHORT)
    for (; row + VEC <= last_row && (outer - row - VEC) * reduced >= VEC; row += VEC) {
      const ACCV s = reduce_short(x + row * reduced, reduced);
      const ACCV all = FINISH(s, reduced, correction);
      STOREV(y, row, all);
    }
  for (; row < last_row; ++row) {
    const STATE s = reduce_run(x + row * reduced, reduced);
    STORE_Y(y, row, FINISH(s, reduced, correction));
  }
}

// lanes[i] takes x[i] for all i < n, or that of four rows at once.
void push_row(ACC* lanes, __global const T* x, long n) {
  FOR_VECTORS(i) {
    const ACCV s = VLOAD(0, lanes + i), v = LOADV(x, i);
    const ACCV next = PUSHV(s, v);
    STORE_LANES(next, lanes + i);
  }
  for (long i = n / VEC * VEC; i < n; ++i) lanes[i] = PUSH(lanes[i], LOAD_T(x, i), i);
}
void push_four(ACC* lanes, __global const T* x, long step, long n) {
  __global const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
  FOR_VECTORS(i) {
    const ACCV s = VLOAD(0, lanes + i);
    const ACCV v0 = LOADV(x, i), v1 = LOADV(x1, i), v2 = LOADV(x2, i), v3 = LOADV(x3, i);
    const ACCV v01 = PUSHV(v0, v1), v23 = PUSHV(v2, v3);
    const ACCV all = PUSHV(v01, v23);
    const ACCV next = PUSHV(s, all);
    STORE_LANES(next, lanes + i);
  }
  for (long i = n / VEC * VEC; i < n; ++i)
    for (int k = 0; k < 4; ++k) lanes[i] = PUSH(lanes[i], LOAD_T(x, k * step + i), i);
}

__kernel void reduce_columns(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                             long outer, long reduced, long inner, long parts, ACC correction,
                             long joined) {
  x += at.s0, y += at.s1;
  const long strips = joined > 1 ? 1 : (inner + STRIP - 1) / STRIP, id = get_global_id(0);
  if (id >= outer * parts * strips) return;
  const long strip = id % strips, part = id / strips % parts, o = id / strips / parts;
  const long chunk = (reduced + parts - 1) / parts;
  const long first = min(reduced, part * chunk), last = min(reduced, first + chunk);
  const long columns = min((long)STRIP, inner - strip * STRIP), width = columns * joined;
  ACC total[STRIP], middle[STRIP];
  for (long i = 0; i < width; ++i) total[i] = IDENTITY;
  x += o * reduced * inner + strip * STRIP;
  long row = first;
  while (row + joined <= last) {
    const long end = row + min((last - row) / joined, (long)BLOCK) * joined;
    for (long i = 0; i < width; ++i) middle[i] = IDENTITY;
    for (; row + 4 * joined <= end; row += 4 * joined)
      push_four(middle, x + row * inner, joined * inner, width);
    for (; row < end; row += joined) push_row(middle, x + row * inner, width);
    for (long i = 0; i < width; ++i) total[i] = COMBINE(total[i], middle[i]);
  }
  for (; row < last; ++row) push_row(total, x + row * inner, columns);
  for (long l = 1; l < joined; ++l)
    for (long i = 0; i < columns; ++i) total[i] = COMBINE(total[i], total[l * columns + i]);
  for (long i = 0; i < columns; ++i) {
    const long j = strip * STRIP + i;
    if (parts == 1)
      STORE_Y(y, o * inner + j, FINISH(total[i], reduced, correction));
    else
      states[(o * parts + part) * inner + j] = total[i];
  }
}
