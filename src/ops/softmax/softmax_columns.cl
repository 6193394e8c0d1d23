// softmax, log_softmax and their gradients along an axis of x (outer, n, inner) whose elements lie
// inner > 1 apart, for CPUs: rows next to each other are lanes. A work-item owns `block` strips of
// up to `wide` of them; what it reads is kept in local memory (n x wide numbers of each operand),
// so that memory is read once, `wide` neighbours at a time. Values as in softmax.cl.
// Defines: those of vectors.cl; MOST, the largest wide / VEC.
// device(softmax, log_softmax, softmax_backward, log_softmax_backward): CPU

#include "ops/softmax/gradients.cl"
#include "ops/softmax/vectors.cl"

typedef ACCV __attribute__((aligned(sizeof(ACC)))) loose_lanes;
#define KEPT(kept, i, c) (*(__local loose_lanes*)((kept) + (i)*wide + (c)*VEC))

// The strips of an entry of outer share its whole vectors evenly; the last one has the columns that
// fill no vector too, as a vector that overlaps the one before it. Only with inner < VEC there are
// fewer than VEC columns.
#define FOR_STRIPS                                      \
  long id = (long)get_global_id(0) * block;             \
  const long last_id = min(outer * strips, id + block); \
  for (; id < last_id; ++id)
#define PLACE_STRIP                                                                 \
  const long o = id / strips, strip = id - o * strips, whole = inner / VEC;         \
  const long first = strip * whole / strips * VEC;                                  \
  const long end = strip + 1 < strips ? (strip + 1) * whole / strips * VEC : inner; \
  const int columns = (int)(end - first), vectors = (columns + VEC - 1) / VEC;      \
  const long start = o * n * inner + first

#define FOR_COLUMNS(c) for (int c = 0; c < vectors; ++c)
#define COLUMN(c) min((c)*VEC, columns - VEC)

void keep(__global const T* p, __local ACC* kept, long n, long inner, int columns, int wide) {
  const int vectors = (columns + VEC - 1) / VEC;
  for (long i = 0; i < n; ++i, p += inner) {
    if (columns < VEC)
      KEPT(kept, i, 0) = load_few(p, columns, (ACC)0);
    else
      FOR_COLUMNS(c) KEPT(kept, i, c) = LOADV(p, COLUMN(c));
  }
}

// The result at element i of vector c, an expression; with PAST_CACHES past the caches.
#if defined(PAST_CACHES) && defined(SAME)
#define STORE_COLUMN(to, c, result)                                        \
  if ((size_t)(to) % (VEC * sizeof(T)) == 0 && ((c) + 1) * VEC <= columns) \
    STREAM(result, (__global ACCV*)((to) + (c)*VEC));                      \
  else                                                                     \
    STOREV(to, COLUMN(c), (result))
#else
#define STORE_COLUMN(to, c, result) STOREV(to, COLUMN(c), (result))
#endif
#define STORE_STRIP(p, result)                        \
  for (long i = 0; i < n; ++i) {                      \
    __global T* to = (p) + i * inner;                 \
    if (columns < VEC) {                              \
      const int c = 0;                                \
      store_few(result, to, columns);                 \
    } else {                                          \
      FOR_COLUMNS(c) { STORE_COLUMN(to, c, result); } \
    }                                                 \
  }

// The largest element of every lane of vector c.
ACCV largest_of(__local const ACC* kept, int c, long n, int wide) {
  ACCV top = (ACCV)(ACC)(-INFINITY);
  for (long i = 0; i < n; ++i) {
    const ACCV v = KEPT(kept, i, c);
    top = LARGER(v, top);
  }
  return top;
}

__kernel void softmax(__global const T* x, __global T* y, long8 at, long outer, long n, long inner,
                      long strips, int wide, __local ACC* kept, long block) {
  x += at.s0, y += at.s1;
  FOR_STRIPS {
    PLACE_STRIP;
    ACCV factor[MOST];
    keep(x + start, kept, n, inner, columns, wide);
    FOR_COLUMNS(c) {
      const ACCV top = largest_of(kept, c, n, wide);
      ACCV sum = (ACCV)(ACC)0;
      for (long i = 0; i < n; ++i) {
        const ACCV e = exp_vector(KEPT(kept, i, c) - top);
        KEPT(kept, i, c) = e;
        sum += e;
      }
      factor[c] = (ACC)1 / sum;
    }
    STORE_STRIP(y + start, KEPT(kept, i, c) * factor[c]);
  }
}

__kernel void log_softmax(__global const T* x, __global T* y, long8 at, long outer, long n,
                          long inner, long strips, int wide, __local ACC* kept, long block) {
  x += at.s0, y += at.s1;
  FOR_STRIPS {
    PLACE_STRIP;
    ACCV top[MOST], shift[MOST];
    keep(x + start, kept, n, inner, columns, wide);
    FOR_COLUMNS(c) {
      const ACCV largest = largest_of(kept, c, n, wide);
      ACCV sum = (ACCV)(ACC)0;
      for (long i = 0; i < n; ++i) sum += exp_vector(KEPT(kept, i, c) - largest);
      top[c] = largest, shift[c] = log(sum);
    }
    STORE_STRIP(y + start, (KEPT(kept, i, c) - top[c]) - shift[c]);
  }
}

#define BACKWARD(name, TERM, DX)                                                             \
  __kernel void name(__global const T* y, __global const T* dy, __global T* dx, long8 at,    \
                     long outer, long n, long inner, long strips, int wide, __local ACC* ys, \
                     long block) {                                                           \
    y += at.s0, dy += at.s1, dx += at.s2;                                                    \
    __local ACC* gs = ys + n * wide;                                                         \
    FOR_STRIPS {                                                                             \
      PLACE_STRIP;                                                                           \
      ACCV sums[MOST];                                                                       \
      keep(y + start, ys, n, inner, columns, wide);                                          \
      keep(dy + start, gs, n, inner, columns, wide);                                         \
      FOR_COLUMNS(c) {                                                                       \
        ACCV sum = (ACCV)(ACC)0;                                                             \
        for (long i = 0; i < n; ++i) sum += TERM(KEPT(ys, i, c), KEPT(gs, i, c));            \
        sums[c] = sum;                                                                       \
      }                                                                                      \
      STORE_STRIP(dx + start, DX(KEPT(ys, i, c), KEPT(gs, i, c), sums[c]));                  \
    }                                                                                        \
  }

BACKWARD(softmax_backward, SOFTMAX_TERM, SOFTMAX_DX)
BACKWARD(log_softmax_backward, LOG_SOFTMAX_TERM, LOG_SOFTMAX_DX)
