// Gradients of attention for CPUs; weights are computed again from the scores and `lse`. With
// p = exp(score - lse) and ds = p (dy v - delta), delta = dy y - dlse:
//   dv[s] = sum over l of p[l, s] dy[l], dk[s] = scale * sum over l of ds[l, s] q[l],
//   dq[l] = scale * sum over s of ds[l, s] k[s].
// A work-item owns some blocks of the keys of a batch. For each block it walks over blocks of
// queries: both factors of every product lie in local memory, which on a CPU is the cache of its
// core; so do dk and dv. Its part of dq lies in `work`, and attention_add_parts sums the parts in
// their order.
// `work` holds lse and delta (batches, L each), then dq's parts (parts, batches, L, columns).
// Global size (parts, batches). Defines: those of scores.cl, ROOM (elements of local memory).
// int8 cut: keys of a work-item, of a block, queries of a block, elements between queries and
// between their gradients.
#include "ops/attention/scores.cl"

#define PANELS(n) (((n) + NR - 1) / NR * NR)

// device(attention_backward_tiles): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention_backward_tiles(
    __global const T* q, __global const T* k, __global const T* v, __global const M* mask,
    __global const T* dy, __global T* dk, __global T* dv, __global ACC* work, long8 at, long4 size,
    long4 sm, long inner, ACC scale, int8 cut) {
  __local ACC room[ROOM];
  const long z = (long)get_global_id(1), L = size.s0, batches = (long)get_global_size(1);
  // Drivers hand out the first work-items many at a time: those with the most to do come last.
  const long part = CAUSAL ? get_global_size(0) - 1 - get_global_id(0) : get_global_id(0);
  const int E = (int)size.s2, F = (int)size.s3;
  const int block = cut.s1, most = cut.s2, q_pitch = cut.s3, dy_pitch = cut.s4;
  const int wide = PANELS(E), columns = PANELS(F), tall = (block + MR - 1) / MR * MR;
  local ACC* k_across = room;  // panels of keys
  local ACC* v_across = k_across + block * E;
  local ACC* k_panels = v_across + block * F;  // panels of columns
  local ACC* dk_sums = k_panels + block * wide;
  local ACC* dv_sums = dk_sums + tall * wide;
  local ACC* q_left = dv_sums + tall * columns;
  local ACC* dy_left = q_left + most * q_pitch;
  local ACC* q_panels = dy_left + most * dy_pitch;
  local ACC* dy_panels = q_panels + most * wide;
  local ACC* p = dy_panels + most * columns;
  local ACC* ds = p + most * SCORE_PITCH;
  q += at.s0 + z * L * E;
  k += at.s1 + z * size.s1 * E;
  v += at.s2 + z * size.s1 * F;
  mask += at.s3;
  mask = MASK_OF(z);
  dy += at.s4 + z * L * F;
  dk += at.s5 + z * size.s1 * E;
  dv += at.s6 + z * size.s1 * F;
  work += at.s7;
  global const ACC* lse = work + z * L;
  global const ACC* delta = lse + batches * L;
  global ACC* dq = work + 2 * batches * L + (part * batches + z) * L * wide;

  for (long i = 0; i < L * wide; i += VEC) STORE_GLOBAL((ACCV)(0), dq + i);
  const long last = min(size.s1, (part + 1) * cut.s0);
  for (long start = part * cut.s0; start < last; start += block) {
    const int count = (int)min((long)block, last - start);
    for (int s = 0; s < count; s += NR) {
      const int keys = min(NR, count - s);
      pack_columns(k_across + s * E, k + (start + s) * E, E, keys, 1, E);
      pack_columns(v_across + s * F, v + (start + s) * F, F, keys, 1, F);
    }
    const bool k_finite = pack_rows_of(k_panels, k + start * E, count, E, block);
    for (int i = 0; i < tall * (wide + columns); i += VEC) STORE_LOCAL((ACCV)(0), dk_sums + i);
    // Queries before the first key see none of them.
    for (long from = CAUSAL ? start : 0; from < L; from += most) {
      const int queries = (int)min((long)most, L - from);
      copy_rows(q_left, q + from * E, queries, E, q_pitch, scale);
      copy_rows(dy_left, dy + from * F, queries, F, dy_pitch, 1);
      const bool q_finite = pack_rows_of(q_panels, q + from * E, queries, E, most);
      const bool dy_finite = pack_rows_of(dy_panels, dy + from * F, queries, F, most);
      for (int first = 0; first < queries; first += MR) {
        const int rows = min(MR, queries - first);
        const int keys = CAUSAL ? (int)clamp(from + first + rows - start, 0L, (long)count) : count;
        local ACC* p_tile = p + first * SCORE_PITCH;
        local ACC* ds_tile = ds + first * SCORE_PITCH;
        score_tile(q_left + first * q_pitch, q_pitch, rows, k_across, E, keys, p_tile);
        score_tile(dy_left + first * dy_pitch, dy_pitch, rows, v_across, F, keys, ds_tile);
        for (int i = 0; i < rows; ++i) {
          const long l = from + first + i;
          local ACC* p_row = p_tile + i * SCORE_PITCH;
          local ACC* ds_row = ds_tile + i * SCORE_PITCH;
          mask_scores(p_row, keys, mask, l, start, sm);
          const ACC base = lse[l], middle = delta[l];
          int s = 0;
          for (; s < keys; s += VEC) {
            const ACCV score = LOAD_LOCAL(p_row + s);
            const ACCV weight = exp_vector(score - base);
            // A key that a query does not see has no part in anything, whatever it holds.
            const LANEV hidden = score == (ACCV)(-INFINITY);
            STORE_LOCAL(hidden ? (ACCV)(0) : weight, p_row + s);
            STORE_LOCAL(hidden ? (ACCV)(0) : weight * (LOAD_LOCAL(ds_row + s) - middle),
                        ds_row + s);
          }
          for (; s < count; s += VEC) {
            STORE_LOCAL((ACCV)(0), p_row + s);
            STORE_LOCAL((ACCV)(0), ds_row + s);
          }
        }
        global ACC* to = dq + (from + first) * wide;
        ADD_PRODUCT(to, wide, GLOBAL, ds_tile, SCORE_PITCH, 1, rows, k_panels, block, keys, E,
                    k_finite)
      }
      for (int first = 0; first < count; first += MR) {
        const int rows = min(MR, count - first);
        local ACC* to_v = dv_sums + first * columns;
        ADD_PRODUCT(to_v, columns, LOCAL, p + first, 1, SCORE_PITCH, rows, dy_panels, most, queries,
                    F, dy_finite)
        local ACC* to_k = dk_sums + first * wide;
        ADD_PRODUCT(to_k, wide, LOCAL, ds + first, 1, SCORE_PITCH, rows, q_panels, most, queries, E,
                    q_finite)
      }
    }
    for (int s = 0; s < count; ++s) {
      store_row(dk + (start + s) * E, dk_sums + s * wide, E, scale);
      store_row(dv + (start + s) * F, dv_sums + s * columns, F, 1);
    }
  }
}

// dq = scale * the sum of its parts, `count` rows for each work-item.
// device(attention_add_parts): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention_add_parts(
    __global const ACC* work, __global T* dq, long8 at, long rows, int E, int parts, long count,
    ACC scale) {
  const int wide = PANELS(E);
  work += at.s0 + 2 * rows;
  dq += at.s1;
  const long from = (long)get_global_id(0) * count, last = min(rows, from + count);
  for (long row = from; row < last; ++row)
    for (int e = 0; e < E; e += VEC) {
      ACCV sum = (ACCV)(0);
      for (int part = 0; part < parts; ++part)
        sum += LOAD_GLOBAL(work + (part * rows + row) * wide + e);
      sum *= scale;
      if (e + VEC <= E)
        STORE_RESULTS(sum, dq + row * E + e);
      else
        store_few(sum, dq + row * E + e, E - e);
    }
}

// lse and delta into `work`, `count` rows for each work-item.
// device(attention_deltas): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void attention_deltas(
    __global const T* y, __global const T* dy, __global const ACC* lse, __global const ACC* dlse,
    __global ACC* work, long8 at, long rows, int F, int has_dlse, long count) {
  y += at.s0, dy += at.s1, lse += at.s2, dlse += at.s3, work += at.s4;
  const long from = (long)get_global_id(0) * count, last = min(rows, from + count);
  for (long row = from; row < last; ++row) {
    __global const T *a = y + row * F, *b = dy + row * F;
    ACCV sums = (ACCV)(0);
    int f = 0;
    for (; f + VEC <= F; f += VEC) sums = MULTIPLY_ADD(LOADV(a, f), LOADV(b, f), sums);
    ACC sum = sum_lanes(sums);
    for (; f < F; ++f) sum += LOAD_T(a, f) * LOAD_T(b, f);
    work[row] = lse[row];
    work[rows + row] = has_dlse ? sum - dlse[row] : sum;
  }
}
