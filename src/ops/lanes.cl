// What the kernels with one work-item per group share: rows copied into local memory, which on a
// CPU is the cache of the core that runs the group, and square blocks of lanes transposed.
// Needs T and ACC, and vector_macros (VEC, ACCV, LOADV, VLOAD, STORE_LANES); for masks mask_macros.

// vstore16 makes several narrow stores of one wide one; a vector without alignment does not.
typedef ACCV __attribute__((aligned(sizeof(ACC)))) loose_lanes;
#define STORE_LOCAL(v, p) (*(local loose_lanes*)(p) = (v))
#define STORE_GLOBAL(v, p) (*(global loose_lanes*)(p) = (v))
#define LOAD_LOCAL(p) (*(local const loose_lanes*)(p))
#define LOAD_GLOBAL(p) (*(global const loose_lanes*)(p))
// A vector of ACC into VEC elements of T.
#ifdef HALF_VECTORS
#define GLUE_LANES(name, count) name##count
#define STORE_HALVES(count) GLUE_LANES(store_halves, count)
#define STORE_RESULTS(v, p) STORE_HALVES(VEC)(v, p)
#else
#define STORE_RESULTS(v, p) STORE_GLOBAL(v, p)
#endif

// Only where the compiler makes a CPU's own code: the translator to SPIR-V ends the process at it.
#if defined(__has_builtin) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__builtin_prefetch)
#define FETCH(p) __builtin_prefetch((const void*)(size_t)(p))
#define FETCH_TO_WRITE(p) __builtin_prefetch((const void*)(size_t)(p), 1)
#define FETCH_NEAR(p) \
  __builtin_prefetch((const void*)(size_t)(p), 0, 2)  // not into the first cache
#endif
#endif
#ifndef FETCH
#define FETCH(p)
#define FETCH_TO_WRITE(p)
#define FETCH_NEAR(p)
#endif
#include "tensor/kernels/stream.cl"

#ifdef BITSV
// All bits of the lanes [begin, end), none of the others.
static inline BITSV lanes_between(int begin, int end) {
  BITSV mask;
  for (int l = 0; l < VEC; ++l) ((BITS*)&mask)[l] = l >= begin && l < end ? -1 : 0;
  return mask;
}
// Zero in the other lanes. Not select(), whose masks would be made anew for each vector.
#define MASKED(v, mask) AS_ACCV(AS_BITSV(v) & (mask))
#endif
// Whether the tap s of some pixel of a row lies before or behind the row of x. INSIDE_LEFT and
// INSIDE_RIGHT: the least and the largest distance from the first tap with which none does.
#define LEAVES_LEFT(s) ((s)*DILATION_W < INSIDE_LEFT)
#define LEAVES_RIGHT(s) ((s)*DILATION_W > INSIDE_RIGHT)
// VEC elements of T as ACCV.
#ifdef HALF_VECTORS
#define LOAD_PIXELS(p) LOADV(p, 0)
#else
#define LOAD_PIXELS(p) LOAD_GLOBAL(p)
#endif

// Every second lane of two vectors. Not (ACCV)(a.even, b.even), at which Oclgrind's check for
// uninitialised values crashes.
static inline ACCV even_lanes(const ACCV a, const ACCV b) {
  ACCV both;
  both.lo = a.even, both.hi = b.even;
  return both;
}
static inline ACCV odd_lanes(const ACCV a, const ACCV b) {
  ACCV both;
  both.lo = a.odd, both.hi = b.odd;
  return both;
}

// Lane j of vector i becomes lane i of vector j: every step interleaves the halves.
static inline void transpose_lanes(ACCV* v) {
  ACCV t[VEC];
#pragma unroll
  for (int step = 1; step < VEC; step *= 2) {
#pragma unroll
    for (int i = 0; i < VEC / 2; ++i) {
      t[2 * i].even = v[i].lo, t[2 * i].odd = v[i + VEC / 2].lo;
      t[2 * i + 1].even = v[i].hi, t[2 * i + 1].odd = v[i + VEC / 2].hi;
    }
#pragma unroll
    for (int i = 0; i < VEC; ++i) v[i] = t[i];
  }
}

// `length` elements, of which those in [begin, end) come from `from` and the others are zero.
static inline void copy_row(global const T* from, int begin, int end, int length, local ACC* to) {
  if (length >= VEC && begin <= VEC && length - end <= VEC) {
    // Whole vectors of zeros, of which the row covers what is its own.
    STORE_LOCAL((ACCV)0, to);
    STORE_LOCAL((ACCV)0, to + length - VEC);
  } else {
    for (int j = 0; j < begin; ++j) to[j] = 0;
    for (int j = end; j < length; ++j) to[j] = 0;
  }
  if (end - begin >= VEC) {
    for (int j = begin; j < end; j += VEC) {
      const int at = min(j, end - VEC);  // the last vector overlaps the one before
      STORE_LOCAL(LOADV(from, at), to + at);
    }
  } else {
    for (int j = begin; j < end; ++j) to[j] = LOAD_T(from, j);
  }
}

// A row of `width` elements behind `pad` zeros, or before its first -pad elements none of it, as
// `length` elements; only zeros where it does not exist.
static inline void copy_padded(global const T* from, int width, int pad, bool exists, int length,
                               local ACC* to) {
  const int left = clamp(pad, 0, length), right = clamp(width + pad, left, length);
  copy_row(from - pad, exists ? left : 0, exists ? right : 0, length, to);
}

#ifdef STEP_W
// A row of `width` elements behind `pad` zeros, or only zeros where it does not exist, as STEP_W
// rows of `phase` elements: every STEP_W-th one from the first, from the second, ...
static inline void copy_phases(global const T* from, int width, int pad, bool exists, int phase,
                               local ACC* to) {
#if STEP_W == 1
  copy_padded(from, width, pad, exists, phase, to);
#else
  // Elements [begin, end) of each phase are vectors of both, split.
  int begin = 0, end = 0;
#if STEP_W == 2
  const int first = (pad + 1) / 2, last = min((width + pad) / 2, phase) - VEC;
  if (exists && pad >= 0 && first <= last) {
    for (int i = first; i < last + VEC; i += VEC) {
      const int j = min(i, last);  // the last vector overlaps the one before
      const ACCV low = LOADV(from, 2 * j - pad), high = LOADV(from, 2 * j - pad + VEC);
      STORE_LOCAL(even_lanes(low, high), to + j);
      STORE_LOCAL(odd_lanes(low, high), to + phase + j);
    }
    begin = first, end = last + VEC;
  }
#endif
  for (int f = 0; f < STEP_W; ++f)
    for (int j = 0; j < phase; ++j) {
      if (j == begin && begin < end) j = end;
      if (j == phase) break;
      const int column = j * STEP_W + f - pad;
      const bool inside = exists && column >= 0 && column < width;
      to[f * phase + j] = inside ? LOAD_T(from, column) : (ACC)0;
    }
#endif
}
#endif
