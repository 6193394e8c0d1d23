// Variances, logarithms of sums of exponentials, and places of the largest and smallest of x
// (outer, reduced, inner) in vectors, for CPUs. The kernels are those of reduce_vectors.cl:
//   reduce_rows     inner = 1: a work-item owns `block` rows, or a part of one; rows shorter than
//                   a vector are taken VEC at a time, a lane each
//   reduce_columns  inner >= VEC: a work-item owns a part of up to STRIP neighbouring results
// Rows are read in pieces that the first cache holds, twice. What a piece or some rows come to is
// put to the others as in states.cl.
// Defines: those of reduce.cl and of row_macros (ops/softmax/rows.h), STRIP, FLOATING where there
// are NaNs.
// device(reduce_rows, reduce_columns): CPU

#include "ops/reduction/states.cl"
#include "ops/softmax/vectors.cl"

#define PIECE 4096
#define ROWS 8  // that are put together before they join the others

#if defined(KIND_VAR)
typedef struct {
  ACCV mean, squares;
} StateV;
// `here` of `more` elements joins `all` of `count`.
StateV join(StateV all, ACC count, StateV here, ACC more) {
  const ACC part = more / (count + more);
  const ACCV delta = here.mean - all.mean;
  all.mean += delta * part;
  all.squares += here.squares + delta * delta * (count * part);
  return all;
}
StateV state_of_rows(const ACCV* v, int rows) {
  StateV s = {v[0], (ACCV)(ACC)0};
  for (int k = 1; k < rows; ++k) s.mean += v[k];
  s.mean *= (ACC)1 / (ACC)rows;
  for (int k = 0; k < rows; ++k) s.squares += (v[k] - s.mean) * (v[k] - s.mean);
  return s;
}
#define LANE_OF(s, count, l) \
  state_of(count, ((const ACC*)&(s).mean)[l], ((const ACC*)&(s).squares)[l])
ACCV finish_lanes(StateV s, long n, ACC correction) {
  const ACC degrees = (ACC)n - correction;
  return s.squares / (degrees > (ACC)0 ? degrees : (ACC)0);
}

// Elements [from, from + n) of a row relative to `shift`.
STATE state_of_piece(__global const T* xs, long from, long n, ACC shift) {
  xs += from;
  if (n < VEC) {
    const ACCV v = first_lanes(load_few(xs, n, shift) - shift, (ACCV)(ACC)0, n);
    const ACC mean = sum_lanes(v) / (ACC)n;
    const ACCV d = first_lanes(v - mean, (ACCV)(ACC)0, n);
    return state_of((ACC)n, mean, sum_lanes(d * d));
  }
  SUM_VECTORS(sum, LOADV(xs, i) - shift);
  const ACC mean = sum / (ACC)n;
  SUM_VECTORS(squares, ((LOADV(xs, i) - shift) - mean) * ((LOADV(xs, i) - shift) - mean));
  return state_of((ACC)n, mean, squares);
}

#elif defined(KIND_LOGSUMEXP)
typedef struct {
  ACCV top, sum;
} StateV;
// exp(v - top) for v <= top; equal infinities give 1.
#define SCALED(v, top) ((v) == (top) ? (ACCV)(ACC)1 : exp_vector((v) - (top)))
StateV join(StateV all, ACC count, StateV here, ACC more) {
  const ACCV top = LARGER(all.top, here.top);
  StateV s = {top, all.sum * SCALED(all.top, top) + here.sum * SCALED(here.top, top)};
  return s;
}
StateV state_of_rows(const ACCV* v, int rows) {
  StateV s = {v[0], (ACCV)(ACC)0};
  for (int k = 1; k < rows; ++k) s.top = LARGER(v[k], s.top);
  for (int k = 0; k < rows; ++k) s.sum += SCALED(v[k], s.top);
  return s;
}
#define LANE_OF(s, count, l) state_of(((const ACC*)&(s).top)[l], ((const ACC*)&(s).sum)[l])
#define finish_lanes(s, n, correction) ((s).top + log((s).sum))

STATE state_of_piece(__global const T* xs, long from, long n, ACC shift) {
  xs += from;
  if (n < VEC) {
    const ACCV v = load_few(xs, n, (ACC)(-INFINITY));
    const ACC top = largest_lane(v);
    return state_of(top, sum_lanes(first_lanes(SCALED(v, (ACCV)top), (ACCV)(ACC)0, n)));
  }
  MAX_VECTORS(top, LOADV(xs, i));
  SUM_VECTORS(sum, SCALED(LOADV(xs, i), (ACCV)top));
  return state_of(top, sum);
}

#else  // KIND_ARGMAX, KIND_ARGMIN
typedef struct {
  ACCV value;
  LANEV index;
} StateV;
// Whether v, which comes later, takes the place of s; and which of two values stays.
#ifdef FLOATING
#define IS_BETTERV(v, s) ((IS_BETTER(s, v) | ((s) == (v)) | ((s) != (s))) == 0)
#define BEST(a, b) ((((a) != (a)) | IS_BETTER(a, b)) ? (a) : (b))
#else
#define IS_BETTERV(v, s) IS_BETTER(v, s)
#define BEST(a, b) (IS_BETTER(a, b) ? (a) : (b))
#endif
#ifdef KIND_ARGMAX
#define WORST LOWEST
#else
#define WORST HIGHEST
#endif
#define LANE_OF(s, count, l) state_of(((const ACC*)&(s).value)[l], ((const LANE*)&(s).index)[l])

ACC best_lane(ACCV v) { FOLD(v, BEST); }

// The first of n elements that is `value`, which one is.
long place_of(__global const T* xs, long n, ACC value) {
  long i = 0;
#ifdef FLOATING
  if (value != value) {
    for (ACC v = LOAD_T(xs, 0); v == v; v = LOAD_T(xs, i)) ++i;
    return i;
  }
#endif
  for (; i + 4 * VEC <= n; i += 4 * VEC)
    if (any_lane((LOADV(xs, i) == value) | (LOADV(xs, i + VEC) == value) |
                 (LOADV(xs, i + 2 * VEC) == value) | (LOADV(xs, i + 3 * VEC) == value)))
      break;
  while (i + VEC < n && !any_lane(LOADV(xs, i) == value)) i += VEC;
  while (LOAD_T(xs, i) != value) ++i;
  return i;
}

// `best`: of what comes before; its place is looked for only where this is better.
STATE state_of_piece_after(STATE best, __global const T* xs, long from, long n) {
  xs += from;
  ACC value = WORST;
  if (n < VEC) {
    for (long i = 0; i < n; ++i) {
      const ACC v = LOAD_T(xs, i);
      value = BEST(value, v);
    }
  } else {
    REDUCE_VECTORS(all, WORST, BEST, best_lane, LOADV(xs, i));
    value = all;
  }
  if (best.index >= 0 && !IS_BETTERV(value, best.value)) return best;
  return state_of(value, from + place_of(xs, n, value));
}
#endif

#if defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
#define JOIN_PIECE(s, xs, from, n, shift) state_of_piece_after(s, xs, from, n)
#else
#define JOIN_PIECE(s, xs, from, n, shift) COMBINE(s, state_of_piece(xs, from, n, shift))
#endif

STATE reduce_part(__global const T* xs, long first, long last) {
  const ACC shift = SHIFT_AT(xs, 0, first < last);
  if (first + PIECE >= last) return JOIN_PIECE(IDENTITY, xs, first, last - first, shift);
  STATE s = IDENTITY;
  for (long from = first; from < last; from += PIECE)
    s = JOIN_PIECE(s, xs, from, min((long)PIECE, last - from), shift);
  return s;
}

// VEC rows of n < VEC elements, n > 0.
void reduce_lanes(__global const T* xs, __global Y* y, long n, ACC correction) {
#if defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
  ACCV best = LOAD_ROWS(xs, n);
  LANEV index = (LANEV)0;
  for (long i = 1; i < n; ++i) {
    const ACCV v = LOAD_ROWS(xs + i, n);
    const LANEV is_better = IS_BETTERV(v, best);
    best = is_better ? v : best;
    index = is_better ? (LANEV)(LANE)i : index;
  }
  for (int l = 0; l < VEC; ++l) y[l] = ((const LANE*)&index)[l];
#else
  ACCV v[VEC];
  const ACCV shift = LOAD_ROWS(xs, n);
  v[0] = SHIFTED(shift, shift);
  for (long i = 1; i < n; ++i) v[i] = SHIFTED(LOAD_ROWS(xs + i, n), shift);
  STOREV(y, 0, finish_lanes(state_of_rows(v, (int)n), n, correction));
#endif
}

__kernel void reduce_rows(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                          long outer, long reduced, long parts, ACC correction, long block) {
  x += at.s0, y += at.s1;
  if (parts > 1) {
    const long id = get_global_id(0), row = id / parts, part = id - row * parts;
    states[id] =
        reduce_part(x + row * reduced, part * reduced / parts, (part + 1) * reduced / parts);
    return;
  }
  BLOCK_OF(outer);
  if (reduced > 0 && reduced < VEC)
    for (; row + VEC <= last_row; row += VEC)
      reduce_lanes(x + row * reduced, y + row, reduced, correction);
  for (; row < last_row; ++row) {
    const STATE s = reduce_part(x + row * reduced, 0, reduced);
    STORE_Y(y, row, FINISH(s, reduced, correction));
  }
}

#if defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
#define START_COLUMNS(s, p) (s).value = LOADV(p, 0), (s).index = (LANEV)0
// `rows` of them from place `from`.
#define JOIN_ROWS(s, p, rows, from)                                \
  for (int k = 0; k < (rows); ++k) {                               \
    const ACCV v = LOADV(p, k * inner);                            \
    const LANEV is_better = IS_BETTERV(v, (s).value);              \
    (s).value = is_better ? v : (s).value;                         \
    (s).index = is_better ? (LANEV)(LANE)((from) + k) : (s).index; \
  }
#elif defined(KIND_VAR)
#define START_COLUMNS(s, p) (s).mean = (ACCV)(ACC)0, (s).squares = (ACCV)(ACC)0
#else
#define START_COLUMNS(s, p) (s).top = (ACCV)(ACC)(-INFINITY), (s).sum = (ACCV)(ACC)0
#endif
#ifndef JOIN_ROWS
#define JOIN_ROWS(s, p, rows, from)                                  \
  {                                                                  \
    ACCV v[ROWS];                                                    \
    _Pragma("unroll") for (int k = 0; k < (rows); ++k) v[k] =        \
        SHIFTED(LOADV(p, k * inner), shift[c]);                      \
    (s) = join(s, (ACC)(from), state_of_rows(v, rows), (ACC)(rows)); \
  }
#endif

__kernel void reduce_columns(__global const T* x, __global Y* y, __global STATE* states, long8 at,
                             long outer, long reduced, long inner, long parts, ACC correction,
                             long strips) {
  x += at.s0, y += at.s1;
  const long id = get_global_id(0), strip = id % strips, part = id / strips % parts;
  const long o = id / strips / parts;
  const long first = part * reduced / parts, rows = (part + 1) * reduced / parts - first;
  const long left = strip * inner / strips;
  const int columns = (int)((strip + 1) * inner / strips - left);
  const int vectors = (columns + VEC - 1) / VEC;
  StateV all[STRIP / VEC];
  x += o * reduced * inner + left;
#ifdef KIND_VAR
  ACCV shift[STRIP / VEC];
#endif
// The last vector overlaps the one before it.
#define COLUMN(c) min((c)*VEC, columns - VEC)
  for (int c = 0; c < vectors; ++c) {
    __global const T* p = x + COLUMN(c);
    START_COLUMNS(all[c], p + first * inner);
#ifdef KIND_VAR
    shift[c] = reduced > 0 ? LOADV(p, 0) : (ACCV)(ACC)0;
#endif
  }
  x += first * inner;
  long row = 0;
  for (; row + ROWS <= rows; row += ROWS, x += ROWS * inner)
    for (int c = 0; c < vectors; ++c) JOIN_ROWS(all[c], x + COLUMN(c), ROWS, row);
  for (; row < rows; ++row, x += inner)
    for (int c = 0; c < vectors; ++c) JOIN_ROWS(all[c], x + COLUMN(c), 1, row);
  for (int c = 0; c < vectors; ++c) {
    const long j = left + COLUMN(c);
    if (parts > 1) {
      for (int l = 0; l < VEC; ++l) {
        const STATE s = LANE_OF(all[c], (ACC)rows, l);
        __global STATE* to = states + (o * parts + part) * inner + j + l;
        // Field by field: of whole states Mesa 25 writes something else.
#if defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
        to->value = s.value, to->index = s.index + first;
#elif defined(KIND_VAR)
        to->count = s.count, to->mean = s.mean, to->squares = s.squares;
#else
        to->top = s.top, to->sum = s.sum;
#endif
      }
      continue;
    }
#if defined(KIND_ARGMAX) || defined(KIND_ARGMIN)
    for (int l = 0; l < VEC; ++l) y[o * inner + j + l] = ((const LANE*)&all[c].index)[l];
#else
    STOREV(y, o * inner + j, finish_lanes(all[c], reduced, correction));
#endif
  }
}
