// What attention's kernels for CPUs share: rows copied into local memory, and the masked scores of
// a tile of queries and a block of keys. Defines: those of panel_tile.cl and lane_math.cl, M and
// LOAD_M (type_macros), LOAD_MASKS (vectors of them), MASK (0 none, 1 bool, 2 added), CAUSAL,
// SCORE_PITCH.
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

// `rows` rows of n elements as panels across columns, for `capacity` rows. Whether all are finite.
bool pack_rows_of(local ACC* panels, global const T* from, int rows, int n, int capacity) {
  ACCV odd = (ACCV)(0);
  for (int c = 0; c < n; c += NR) {
    local ACC* panel = panels + c * capacity;
    pack_columns(panel, from + c, rows, min(NR, n - c), n, 1);
    for (int i = 0; i < rows * NR; i += VEC)
      odd = MULTIPLY_ADD(LOAD_LOCAL(panel + i), (ACCV)(0), odd);
  }
  return sum_lanes(odd) == 0;
}

// to += left (rows, terms) panels (of pack_rows_of), where the left factor is not 0: what is masked
// away may be anything.
#define ADD_FINITE(to, to_pitch, left, row, column, rows, panels, capacity, terms, n)              \
  for (int i = 0; i < (rows); ++i)                                                                 \
    for (int term = 0; term < (terms); ++term) {                                                   \
      const ACC factor = (left)[i * (row) + term * (column)];                                      \
      if (factor == 0) continue;                                                                   \
      for (int c = 0; c < (n); ++c)                                                                \
        (to)[i * (to_pitch) + c] += factor * (panels)[(c / NR * (capacity) + term) * NR + c % NR]; \
    }

// The same where they are finite, in registers. MEMORY: where `to` lies, GLOBAL or LOCAL.
#define ADD_TILE(multiply, vectors, to, to_pitch, MEMORY, left, row, column, rows, panel, terms) \
  {                                                                                              \
    Tile sum;                                                                                    \
    FOR_TILE(i, j)                                                                               \
    if (j < (vectors))                                                                           \
      sum.of[i][j] = LOAD_##MEMORY((to) + min(i, (rows)-1) * (to_pitch) + j * VEC);              \
    multiply(&sum, left, row, column, rows, panel, terms);                                       \
    FOR_TILE(i, j)                                                                               \
    if (j < (vectors) && i < (rows))                                                             \
      STORE_##MEMORY(sum.of[i][j], (to) + i * (to_pitch) + j * VEC);                             \
  }
#define ADD_PRODUCT(to, to_pitch, MEMORY, left, row, column, rows, panels, capacity, terms, n, \
                    finite)                                                                    \
  if (!(finite)) {                                                                             \
    ADD_FINITE(to, to_pitch, left, row, column, rows, panels, capacity, terms, n)              \
  } else {                                                                                     \
    for (int c = 0; c < (n); c += NR)                                                          \
      if (NV > 1 && (n)-c <= VEC)                                                              \
        ADD_TILE(multiply_narrow, 1, (to) + c, to_pitch, MEMORY, left, row, column, rows,      \
                 (panels) + c * (capacity), terms)                                             \
      else                                                                                     \
        ADD_TILE(multiply_tile, NV, (to) + c, to_pitch, MEMORY, left, row, column, rows,       \
                 (panels) + c * (capacity), terms)                                             \
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
  if (s + VEC <= keys) return LOAD_MASKS(mask, s);
  ACC lanes[VEC];
  STORE_LANES((ACCV)(0), lanes);
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
