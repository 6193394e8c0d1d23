// The k largest or smallest of rows as in topk.cl, for CPUs, without looking at the row k times.
//   topk_lanes  K of them (few, known when compiled) of VEC rows at once, a lane each: every
//               element finds its place among those kept by comparing and changing places. The
//               rows lie side by side (inner > 1), or with inner = 1 one behind the other.
//   topk_rows   inner = 1, k up to MOST: a work-item owns `block` rows, or a part of one, of which
//               the best are kept in order; vectors without a better element are passed over
//   topk_merge  the best of the parts of a row, which come in their order
// Smaller ones are looked for among values turned around (TURNED), so that more is always better.
// Defines: those of vectors.cl, LARGEST (0 or 1), LOWEST of ACC, FLOATING where there are NaNs, K
// for topk_lanes, SIDE_BY_SIDE (0 or 1) for it, MOST.
// device(topk_lanes, topk_rows, topk_merge): CPU

#include "ops/softmax/topk_order.cl"
#include "ops/softmax/vectors.cl"

#ifdef K
// One more element per lane takes its place among the first `kept`; those behind it move on.
#define TAKE_PLACE(kept)                                                      \
  LANEV is_better = (kept) < K ? (LANEV)(-1) : BETTERV(v, best[K - 1]);       \
  _Pragma("unroll") for (int j = min(kept, K - 1); j > 0; --j) {              \
    const LANEV passes = BETTERV(v, best[j - 1]);                             \
    best[j] = passes ? best[j - 1] : is_better ? v : best[j];                 \
    place[j] = passes ? place[j - 1] : is_better ? (LANEV)(LANE)i : place[j]; \
    is_better = passes;                                                       \
  }                                                                           \
  best[0] = is_better ? v : best[0], place[0] = is_better ? (LANEV)(LANE)i : place[0]

#if SIDE_BY_SIDE
#define LOAD_LANES(i) (count == VEC ? LOADV(x, (i)*inner) : load_few(x + (i)*inner, count, (ACC)0))
#else
#define LOAD_LANES(i) (count == VEC ? LOAD_ROWS(x + (i), n) : load_rows(x + (i), n, count))
// Fewer than VEC.
ACCV load_rows(__global const T* p, long step, long count) {
  ACC lanes[VEC];
  STORE_LANES((ACCV)(ACC)0, lanes);
  for (long l = 0; l < count; ++l) lanes[l] = LOAD_T(p, l * step);
  return VLOAD(0, lanes);
}
#endif

// `count` rows, whose results lie `apart`, those of one row `step`.
void best_of_lanes(__global const T* x, __global T* values, __global long* indices, long n,
                   long inner, long count, long apart, long step) {
  ACCV best[K];
  LANEV place[K];
#pragma unroll
  for (int j = 0; j < K; ++j) best[j] = (ACCV)(ACC)0, place[j] = (LANEV)0;
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const ACCV v = TURNED(LOAD_LANES(i));
    TAKE_PLACE(i);
  }
  for (long i = K; i < n; ++i) {
    const ACCV v = TURNED(LOAD_LANES(i));
    TAKE_PLACE(K);
  }
#pragma unroll
  for (int j = 0; j < K; ++j) {
    ACC lanes[VEC];
    STORE_LANES(best[j], lanes);
    for (int l = 0; l < (int)count; ++l) {
      STORE_T(values, l * apart + j * step, TURNED(lanes[l]));
      indices[l * apart + j * step] = ((const LANE*)&place[j])[l];
    }
  }
}

// `groups` of VEC rows each per entry of outer (with inner = 1 of all rows).
__kernel void topk_lanes(__global const T* x, __global T* values, __global long* indices, long8 at,
                         long outer, long n, long inner, long groups, long block) {
  x += at.s0, values += at.s1, indices += at.s2;
#if SIDE_BY_SIDE
  const long all = outer * groups;
#else
  const long all = groups;
#endif
  long group = (long)get_global_id(0) * block;
  const long last = min(all, group + block);
  for (; group < last; ++group) {
#if SIDE_BY_SIDE
    const long o = group / groups, first = (group - o * groups) * VEC;
    const long out = o * K * inner + first;
    best_of_lanes(x + o * n * inner + first, values + out, indices + out, n, inner,
                  min((long)VEC, inner - first), 1, inner);
#else
    const long first = group * VEC;
    best_of_lanes(x + first * n, values + first * K, indices + first * K, n, 1,
                  min((long)VEC, outer - first), K, 1);
#endif
  }
}

#else  // no K

// The best so far, in their order.
typedef struct {
  ACC value[MOST];
  long place[MOST];
} Best;

// `count` are kept.
void insert(Best* best, int count, int k, ACC v, long place) {
  int j = min(count, k - 1);
  for (; j > 0 && is_better(v, best->value[j - 1]); --j) {
    best->value[j] = best->value[j - 1];
    best->place[j] = best->place[j - 1];
  }
  best->value[j] = v, best->place[j] = place;
}

// At least k of n elements are no worse than this: the largest of each of 2 k parts of them or
// more are looked at, which the lanes of some vectors take in turns.
ACC bound_of(__global const T* xs, long n, int k) {
  ACCV top[2 * MOST / VEC + 1];
  const int vectors = (2 * k + VEC - 1) / VEC;
  if (n < 4 * vectors * VEC) return LOWEST;
  if (vectors == 1) {
    ACCV t0 = TURNED(LOADV(xs, 0)), t1 = t0;
    long i = VEC;
    for (; i + 2 * VEC <= n; i += 2 * VEC) {
      const ACCV v0 = TURNED(LOADV(xs, i)), v1 = TURNED(LOADV(xs, i + VEC));
      t0 = LARGER(t0, v0), t1 = LARGER(t1, v1);
    }
    top[0] = LARGER(t0, t1);
  } else {
    for (int g = 0; g < vectors; ++g) top[g] = TURNED(LOADV(xs, g * VEC));
    for (long i = vectors * VEC; i + vectors * VEC <= n; i += vectors * VEC)
      for (int g = 0; g < vectors; ++g) {
        const ACCV v = TURNED(LOADV(xs, i + g * VEC));
        top[g] = LARGER(top[g], v);
      }
  }
#ifdef FLOATING
  for (int g = 0; g < vectors; ++g) top[g] = top[g] == top[g] ? top[g] : (ACCV)LOWEST;
#endif
  ACC bound = LOWEST;
  for (int r = 0; r < k; ++r) {
    ACCV all = top[0];
    for (int g = 1; g < vectors; ++g) all = LARGER(all, top[g]);
    bound = largest_lane(all);
    for (int g = 0; g < vectors; ++g) top[g] = top[g] < bound ? top[g] : (ACCV)LOWEST;
  }
  return bound;
}

#define ANY4(is, limit) any_lane(is(v0, limit) | is(v1, limit) | is(v2, limit) | is(v3, limit))

// Puts the best of the elements [first, last) into `best`; there are k of them at least.
void best_of(__global const T* xs, long first, long last, int k, Best* best) {
  const ACC bound = bound_of(xs + first, last - first, k);
  int count = 0;
  long i = first;
  // Until k are kept, everything that is not worse than the bound; then what is better than the
  // last one.
  while (i < last) {
    if (i + 4 * VEC <= last) {
      const ACCV v0 = TURNED(LOADV(xs, i)), v1 = TURNED(LOADV(xs, i + VEC));
      const ACCV v2 = TURNED(LOADV(xs, i + 2 * VEC)), v3 = TURNED(LOADV(xs, i + 3 * VEC));
      const int any_here =
          count < k ? ANY4(NOT_WORSEV, (ACCV)bound) : ANY4(BETTERV, (ACCV)best->value[k - 1]);
      if (!any_here) {
        i += 4 * VEC;
        continue;
      }
    }
    const long end = min(last, i + 4 * VEC);
    for (; i < end; ++i) {
      const ACC v = TURNED(LOAD_T(xs, i));
      if (count < k ? is_not_worse(v, bound) : is_better(v, best->value[k - 1])) {
        insert(best, count, k, v, i);
        count = min(count + 1, k);
      }
    }
  }
#if defined(FLOATING) && !LARGEST
  // NaNs come last.
  for (i = first; count < k; ++i) {
    const ACC v = LOAD_T(xs, i);
    if (v != v) best->value[count] = v, best->place[count++] = i;
  }
#endif
}

void store_best(const Best* best, int k, __global T* values, __global long* indices) {
  for (int j = 0; j < k; ++j) {
    STORE_T(values, j, TURNED(best->value[j]));
    indices[j] = best->place[j];
  }
}

// With several parts their best go to some_values and some_places (outer, parts, k).
__kernel void topk_rows(__global const T* x, __global T* values, __global long* indices,
                        __global ACC* some_values, __global long* some_places, long8 at, long outer,
                        long n, int k, long parts, long block) {
  x += at.s0, values += at.s1, indices += at.s2, some_values += at.s3, some_places += at.s4;
  Best best;
  if (parts > 1) {
    const long id = get_global_id(0), row = id / parts, part = id % parts;
    best_of(x + row * n, part * n / parts, (part + 1) * n / parts, k, &best);
    for (int j = 0; j < k; ++j) {
      some_values[id * k + j] = best.value[j];
      some_places[id * k + j] = best.place[j];
    }
    return;
  }
  FOR_BLOCK(outer) {
    best_of(x + row * n, 0, n, k, &best);
    store_best(&best, k, values + row * k, indices + row * k);
  }
}

__kernel void topk_merge(__global T* values, __global long* indices,
                         __global const ACC* some_values, __global const long* some_places,
                         long8 at, long outer, int k, long parts) {
  values += at.s0, indices += at.s1, some_values += at.s2, some_places += at.s3;
  const long row = get_global_id(0);
  if (row >= outer) return;
  some_values += row * parts * k, some_places += row * parts * k;
  Best best;
  int count = 0;
  for (long part = 0; part < parts; ++part)
    for (int j = 0; j < k; ++j) {
      const ACC v = some_values[part * k + j];
      if (count == k && !is_better(v, best.value[k - 1])) break;  // nor are those behind it
      insert(&best, count, k, v, some_places[part * k + j]);
      count = min(count + 1, k);
    }
  store_best(&best, k, values + row * k, indices + row * k);
}
#endif
