// Attention of a few queries and many keys, for CPUs: every element of k and v is used as often as
// there are queries, so memory decides, and nothing is copied. A work-item owns the queries of a
// batch. Scores are sums along k's rows, VEC keys at a time, whose lanes are folded together; the
// weights of a block of keys then meet the rows of v. Needs rows of VEC elements at least.
// Global size (1, batches). Defines: those of scores.cl; FEW_ROWS, KEYS (a block), FEW_VECTORS (of
// v's columns in registers), ROOM. Sizes as in attention.cl.
#include "ops/attention/scores.cl"

// The scores of VEC keys, of which `keys` exist.
__attribute__((always_inline)) static inline ACCV dot_products(global const T* k,
                                                               local const ACC* q, int n,
                                                               int keys) {
  ACCV sum[VEC];
#pragma unroll
  for (int i = 0; i < VEC; ++i) sum[i] = (ACCV)(0);
  for (int e = 0; e < n; e += VEC) {
    // The last vector overlaps the one before, where q is zero.
    const ACCV factor = LOAD_LOCAL(q + e);
    const int at = min(e, n - VEC);
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      sum[i] = MULTIPLY_ADD(LOADV(k, (long)min(i, keys - 1) * n + at), factor, sum[i]);
  }
  transpose_lanes(sum);
#pragma unroll
  for (int step = 1; step < VEC; step *= 2)
#pragma unroll
    for (int i = 0; i < VEC; i += 2 * step) sum[i] += sum[i + step];
  return sum[0];
}

// sums = sums * shrink + weights (keys) v, FEW_VECTORS vectors of columns from `first` on.
void add_rows(local ACC* sums, ACC shrink, local const ACC* weights, global const T* v, int n,
              int first, int keys) {
  ACCV sum[FEW_VECTORS];
  int at[FEW_VECTORS];
#pragma unroll
  for (int j = 0; j < FEW_VECTORS; ++j) {
    sum[j] = LOAD_LOCAL(sums + j * VEC) * shrink;
    at[j] = min(first + j * VEC, n - VEC);  // the last vector overlaps the one before
  }
  for (int key = 0; key < keys; ++key, v += n) {
    const ACC weight = weights[key];
    if (weight == 0) continue;
#pragma unroll
    for (int j = 0; j < FEW_VECTORS; ++j)
      sum[j] = MULTIPLY_ADD(LOADV(v, at[j]), (ACCV)(weight), sum[j]);
  }
#pragma unroll
  for (int j = 0; j < FEW_VECTORS; ++j) STORE_LOCAL(sum[j], sums + j * VEC);
}

// device(attention_few): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention_few(
    __global const T* q, __global const T* k, __global const T* v, __global const M* mask,
    __global T* y, __global ACC* lse, long8 at, long4 size, long4 sm, long inner, ACC scale) {
  __local ACC room[ROOM];
  __local ACC weights[SCORE_PITCH];
  const long z = (long)get_global_id(1);
  const int L = (int)size.s0, E = (int)size.s2, F = (int)size.s3;
  const int wide = (E + VEC - 1) / VEC * VEC;
  const int columns = (F + FEW_VECTORS * VEC - 1) / (FEW_VECTORS * VEC) * FEW_VECTORS * VEC;
  local ACC* queries = room;
  local ACC* sums = queries + L * wide;
  q += at.s0 + z * L * E;
  k += at.s1 + z * size.s1 * E;
  v += at.s2 + z * size.s1 * F;
  mask += at.s3;
  mask = MASK_OF(z);
  y += at.s4 + z * L * F;
  lse += at.s5 + z * L;

  ACC top[FEW_ROWS], total[FEW_ROWS];
  for (int l = 0; l < L; ++l) {
    top[l] = -INFINITY, total[l] = 0;
    for (int e = 0; e < E; e += VEC) {
      const ACCV x = LOADV(q, l * E + min(e, E - VEC)) * scale;
      STORE_LOCAL(e + VEC <= E ? x : last_lanes(x, (ACCV)(0), E - e), queries + l * wide + e);
    }
    for (int c = 0; c < columns; c += VEC) STORE_LOCAL((ACCV)(0), sums + l * columns + c);
  }
  const long last = CAUSAL ? min(size.s1, size.s0) : size.s1;
  for (long start = 0; start < last; start += KEYS) {
    const int keys = (int)min((long)KEYS, last - start);
    for (int l = 0; l < L; ++l) {
      for (int s = 0; s < keys; s += VEC)
        STORE_LOCAL(keys - s >= VEC
                        ? dot_products(k + (start + s) * E, queries + l * wide, E, VEC)
                        : dot_products(k + (start + s) * E, queries + l * wide, E, keys - s),
                    weights + s);
      const ACC largest = mask_scores(weights, keys, mask, l, start, sm);
      ACC shrink;
      WEIGH(weights, keys, largest, top[l], total[l], shrink);
      for (int c = 0; c < F; c += FEW_VECTORS * VEC)
        add_rows(sums + l * columns + c, shrink, weights, v + start * F, F, c, keys);
    }
  }
  for (int l = 0; l < L; ++l) {
    const ACC factor = 1 / total[l];
    for (int c = 0; c < F; c += VEC)
      STORE_RESULTS(LOAD_LOCAL(sums + l * columns + c) * factor, y + l * F + min(c, F - VEC));
    lse[l] = top[l] + log(total[l]);
  }
}
