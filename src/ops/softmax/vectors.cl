// Rows in vectors, for CPUs: a work-item owns `block` neighbouring rows of n elements, which lie
// one after the other. The elements that do not fill a vector are read together with some before
// them (the vector at REST), or with n < VEC through an array, so that none is computed alone.
// Defines: T, ACC, those of vector_macros and row_macros (ops/softmax/rows.h).

// With LOOSE vectors are read and written whole, where vload and vstore may be taken apart; not for
// kernels that fill arrays of vectors (ops/memory_hints.h).
#if defined(LOOSE) && defined(LOOSE_LOADV)
#undef LOADV
#undef STOREV
#define LOADV(p, i) LOOSE_LOADV(p, i)
#define STOREV(p, i, v) LOOSE_STOREV(p, i, v)
#endif

#define BLOCK_OF(rows)                       \
  long row = (long)get_global_id(0) * block; \
  const long last_row = min((long)(rows), row + block)
#define FOR_BLOCK(rows) \
  BLOCK_OF(rows);       \
  for (; row < last_row; ++row)

// A vector of what is read for the first time.
#define FIRSTV(p, i) (FETCH((p) + (i) + FETCH_AHEAD), LOADV(p, i))
#define FOR_VECTORS(i) for (long i = 0; i + VEC <= n; i += VEC)
#define REST (n - VEC)
#define HAS_REST (n % VEC != 0)

#include "ops/softmax/lane_math.cl"

// A row of n < VEC elements, before the end of whose work-item's rows `room` elements are left:
// what is read and written behind it belongs to rows that come later.
ACCV load_short(__global const T* p, long n, ACC other, long room) {
  return room < VEC ? load_few(p, n, other) : first_lanes(LOADV(p, 0), other, n);
}
void store_short(ACCV v, __global T* p, long n, long room) {
  if (room < VEC)
    store_few(v, p, n);
  else
    STOREV(p, 0, v);
}
#define ROOM ((last_row - row) * n)

// One element of each of VEC rows, `step` apart, and back.
#if VEC == 16
#define LOAD_ROWS(p, step)                                                                      \
  ((ACCV)(LOAD_T(p, 0), LOAD_T(p, step), LOAD_T(p, 2 * step), LOAD_T(p, 3 * step),              \
          LOAD_T(p, 4 * step), LOAD_T(p, 5 * step), LOAD_T(p, 6 * step), LOAD_T(p, 7 * step),   \
          LOAD_T(p, 8 * step), LOAD_T(p, 9 * step), LOAD_T(p, 10 * step), LOAD_T(p, 11 * step), \
          LOAD_T(p, 12 * step), LOAD_T(p, 13 * step), LOAD_T(p, 14 * step), LOAD_T(p, 15 * step)))
#elif VEC == 8
#define LOAD_ROWS(p, step)                                                         \
  ((ACCV)(LOAD_T(p, 0), LOAD_T(p, step), LOAD_T(p, 2 * step), LOAD_T(p, 3 * step), \
          LOAD_T(p, 4 * step), LOAD_T(p, 5 * step), LOAD_T(p, 6 * step), LOAD_T(p, 7 * step)))
#else
#define LOAD_ROWS(p, step) \
  ((ACCV)(LOAD_T(p, 0), LOAD_T(p, step), LOAD_T(p, 2 * step), LOAD_T(p, 3 * step)))
#endif
void store_rows(ACCV v, __global T* p, long step) {
  ACC lanes[VEC];
  STORE_LANES(v, lanes);
  for (int l = 0; l < VEC; ++l) STORE_T(p, l * step, lanes[l]);
}

// Writes `value`, an expression in the place i, to all of a row of n >= VEC elements at p, which
// may overlap nothing that it reads: some are computed twice.
#define STORE_NEAR(p, value)                                      \
  {                                                               \
    for (long i = 0; i + VEC <= n; i += VEC) STOREV(p, i, value); \
    if (HAS_REST) {                                               \
      const long i = REST;                                        \
      STOREV(p, i, value);                                        \
    }                                                             \
  }
// With PAST_CACHES past the caches, where the row is long: lines that it shares with its neighbours
// are not, for a line that goes both ways is written twice.
#if defined(PAST_CACHES) && defined(SAME)
#define LONG_ROW (32 * VEC)
#define VECTOR_BYTES (VEC * sizeof(T))
#define STORE_ROW(p, value)                                                                   \
  if (n < LONG_ROW) {                                                                         \
    STORE_NEAR(p, value);                                                                     \
  } else {                                                                                    \
    const long lead = (VECTOR_BYTES - (size_t)(p) % VECTOR_BYTES) % VECTOR_BYTES / sizeof(T); \
    long i = 0;                                                                               \
    if (lead > 0) store_few(value, p, lead);                                                  \
    for (i = lead; i + VEC <= n; i += VEC) STREAM(value, (__global ACCV*)((p) + i));          \
    const long left = n - i;                                                                  \
    if (left > 0) {                                                                           \
      ACC lanes[VEC];                                                                         \
      i = REST;                                                                               \
      STORE_LANES(value, lanes);                                                              \
      for (long l = VEC - left; l < VEC; ++l) STORE_T(p, i + l, lanes[l]);                    \
    }                                                                                         \
  }
#else
#define STORE_ROW(p, value) STORE_NEAR(p, value)
#endif

// ACC total = OP over all vectors of the row of `element`, an expression in their place i; several
// accumulators, because one would wait for itself.
#define REDUCE_VECTORS(total, START, OP, fold, element)   \
  ACC total;                                              \
  {                                                       \
    ACCV s0 = (ACCV)(START), s1 = s0, s2 = s0, s3 = s0;   \
    long base = 0;                                        \
    for (; base + 4 * VEC <= n; base += 4 * VEC) {        \
      {                                                   \
        const long i = base;                              \
        const ACCV e = (element);                         \
        s0 = OP(s0, e);                                   \
      }                                                   \
      {                                                   \
        const long i = base + VEC;                        \
        const ACCV e = (element);                         \
        s1 = OP(s1, e);                                   \
      }                                                   \
      {                                                   \
        const long i = base + 2 * VEC;                    \
        const ACCV e = (element);                         \
        s2 = OP(s2, e);                                   \
      }                                                   \
      {                                                   \
        const long i = base + 3 * VEC;                    \
        const ACCV e = (element);                         \
        s3 = OP(s3, e);                                   \
      }                                                   \
    }                                                     \
    for (; base + VEC <= n; base += VEC) {                \
      const long i = base;                                \
      const ACCV e = (element);                           \
      s0 = OP(s0, e);                                     \
    }                                                     \
    if (HAS_REST) {                                       \
      const long i = REST;                                \
      const ACCV e = (element);                           \
      s1 = OP(s1, last_lanes(e, (ACCV)(START), n % VEC)); \
    }                                                     \
    const ACCV s01 = OP(s0, s1), s23 = OP(s2, s3);        \
    total = fold(OP(s01, s23));                           \
  }
#define SUM_VECTORS(total, element) REDUCE_VECTORS(total, (ACC)0, PLUS, sum_lanes, element)
#define MAX_VECTORS(total, element) \
  REDUCE_VECTORS(total, (ACC)(-INFINITY), LARGER, largest_lane, element)
