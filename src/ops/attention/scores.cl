// What attention's kernels for CPUs share: rows copied into local memory, and the masked scores of
// a tile of queries and a block of keys. Defines: those of panel_tile.cl and lane_math.cl, M and
// LOAD_M (type_macros), MASK (0 none, 1 bool, 2 added), CAUSAL, SCORE_PITCH.
#define LEFT_SPACE local
#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/conv2d/epilogue.cl"
#include "ops/matmul/pack_panel.cl"
#include "ops/softmax/lane_math.cl"

#define MASK_OF(z) mask + (z) / inner* sm.s0 + (z) % inner* sm.s1

// `rows` rows of n elements times `factor`, `pitch` apart.
void copy_rows(local ACC* to, global const T* from, int rows, int n, int pitch, ACC factor) {
  for (int i = 0; i < rows; ++i) {
    int e = 0;
    for (; e + VEC <= n; e += VEC)
      STORE_LOCAL(LOADV(from, (long)i * n + e) * factor, to + i * pitch + e);
    for (; e < n; ++e) to[i * pitch + e] = LOAD_T(from, (long)i * n + e) * factor;
  }
}

// n elements times `factor`.
void store_row(global T* to, local const ACC* from, int n, ACC factor) {
  int i = 0;
  for (; i + VEC <= n; i += VEC) STORE_RESULTS(LOAD_LOCAL(from + i) * factor, to + i);
  for (; i < n; ++i) STORE_T(to, i, from[i] * factor);
}

// scores (rows, keys) = left (rows, terms) panels; whole vectors of every row.
#define KEEP_SCORES(multiply, vectors)                                                    \
  {                                                                                       \
    Tile sum;                                                                             \
    clear_tile(&sum);                                                                     \
    multiply(&sum, left, pitch, 1, rows, panels + s * terms, terms);                      \
    FOR_TILE(i, j)                                                                        \
    if (j < (vectors)) STORE_LOCAL(sum.of[i][j], scores + i * SCORE_PITCH + s + j * VEC); \
  }
void score_tile(local const ACC* left, int pitch, int rows, local const ACC* panels, int terms,
                int keys, local ACC* scores) {
  for (int s = 0; s < keys; s += NR)
    if (NV > 1 && keys - s <= VEC)
      KEEP_SCORES(multiply_narrow, 1)
    else
      KEEP_SCORES(multiply_tile, NV)
}

// The mask's elements of VEC keys from `s` on.
#if MASK
ACCV load_mask(global const M* mask, long step, int s, int keys) {
  if (step == 0) return (ACCV)(LOAD_M(mask, 0));
  ACC lanes[VEC];
  STORE_LANES((ACCV)(0), lanes);
#if MASK == 1
  // Ones and zeros in bytes.
  if (s + VEC <= keys) {
#pragma unroll
    for (int l = 0; l < VEC; ++l) lanes[l] = LOAD_M(mask, s + l);
    return VLOAD(0, lanes);
  }
#else
  if (s + VEC <= keys) return LOADV(mask, s);
#endif
  for (int l = 0; s + l < keys; ++l) lanes[l] = LOAD_M(mask, s + l);
  return VLOAD(0, lanes);
}
#endif

// Masks the scores of query l with `keys` keys from `start` on; lanes behind them become -inf too.
// Returns the largest, which NaN may miss.
ACC mask_scores(local ACC* score, int keys, global const M* mask, long l, long start, long4 sm) {
  const int seen = CAUSAL ? (int)clamp(l + 1 - start, 0L, (long)keys) : keys;
  ACCV top = (ACCV)(-INFINITY);
#if MASK
  mask += l * sm.s2 + start * sm.s3;
#endif
  for (int s = 0; s < keys; s += VEC) {
    ACCV x = LOAD_LOCAL(score + s);
#if MASK == 1
    x = load_mask(mask, sm.s3, s, keys) == (ACCV)(0) ? (ACCV)(-INFINITY) : x;
#elif MASK == 2
    x += load_mask(mask, sm.s3, s, keys);
#endif
    if (s + VEC > seen) x = first_lanes(x, (ACCV)(-INFINITY), seen - s);
    if (MASK || s + VEC > seen) STORE_LOCAL(x, score + s);
    top = LARGER(x, top);
  }
  return largest_lane(top);
}

// Scores whose largest is `largest` become weights. `top` and `total` are those of all keys so far;
// sums up to now are to be multiplied by `shrink`.
#define WEIGH(score, keys, largest, top, total, shrink)                                   \
  {                                                                                       \
    const ACC above = LARGER(largest, top);                                               \
    /* A row that has seen nothing has no largest score: exp(-inf + inf) would be NaN. */ \
    const ACC base = above == -INFINITY ? (ACC)0 : above;                                 \
    shrink = exp_vector((ACCV)(top - base)).s0;                                           \
    ACCV all = (ACCV)(0);                                                                 \
    for (int s = 0; s < (keys); s += VEC) {                                               \
      const ACCV weight = exp_vector(LOAD_LOCAL((score) + s) - base);                     \
      STORE_LOCAL(weight, (score) + s);                                                   \
      all += weight;                                                                      \
    }                                                                                     \
    top = above;                                                                          \
    total = total * shrink + sum_lanes(all);                                              \
  }
