// Scaled dot-product attention and its gradients, a block of keys at a time: the score matrix is
// never stored. Tensors are contiguous: q (Z, L, E), k (Z, S, E), v (Z, S, F), y (Z, L, F); sums
// run in ACC memory (`work`), one row per work-item.
//   attention_rows        one work-item per query; no barriers
//   attention_groups      one work-group per query: items share a block of keys, then the columns
//   attention_backward_q  one work-item per query: dq
//   attention_backward_kv one work-item per key: dk and dv
// `lse` keeps the logarithm of each row's sum of exponentials, for the gradients.
// Defines: T, ACC, LOAD_T, STORE_T, vectors of VEC, BLOCK (keys), WG, MASK (0 none, 1 bool, 2
// added; M, LOAD_M its type), CAUSAL. Sizes: long4 size: L, S, E, F; mask strides: long4 sm: batch
// outer, batch inner, L, S; inner batches.

ACC dot_rows(__global const T* x, __global const T* z, long n) {
  ACC sum = 0;
  long i = 0;
  if (n >= VEC) {
    ACCV wide = (ACCV)(0);
    for (; i + VEC <= n; i += VEC) wide = MULTIPLY_ADD(LOADV(x, i), LOADV(z, i), wide);
    ACC lanes[VEC];
    STORE_LANES(wide, lanes);
    for (int lane = 0; lane < VEC; ++lane) sum += lanes[lane];
  }
  for (; i < n; ++i) sum += LOAD_T(x, i) * LOAD_T(z, i);
  return sum;
}

// The masked score of query l and key s.
ACC score_of(__global const T* q, __global const T* k, __global const M* mask, long l, long s,
             long4 size, long4 sm, ACC scale) {
#if CAUSAL
  if (s > l) return -INFINITY;
#endif
#if MASK == 1
  if (LOAD_M(mask, l * sm.s2 + s * sm.s3) == 0) return -INFINITY;
#endif
  ACC score = dot_rows(q + l * size.s2, k + s * size.s2, size.s2) * scale;
#if MASK == 2
  score += LOAD_M(mask, l * sm.s2 + s * sm.s3);
#endif
  return score;
}

#define MASK_OF(z) mask + (z) / inner* sm.s0 + (z) % inner* sm.s1

// occupancy(attention_rows): exponentials in float64 take 50 registers, of which Vega has few.
// coalescing(attention_rows): all items of a group walk the same key and value at the same time;
// queries and sums are each item's own rows.
__kernel void attention_rows(__global const T* q, __global const T* k, __global const T* v,
                             __global const M* mask, __global T* y, __global ACC* lse,
                             __global ACC* work, long8 at, long4 size, long4 sm, long inner,
                             ACC scale) {
  const long l = (long)get_global_id(0), z = (long)get_global_id(1);
  if (l >= size.s0) return;
  q += at.s0 + z * size.s0 * size.s2;
  k += at.s1 + z * size.s1 * size.s2;
  v += at.s2 + z * size.s1 * size.s3;
  mask += at.s3;
  mask = MASK_OF(z);
  const long row = z * size.s0 + l;
  y += at.s4 + row * size.s3;
  work += at.s6 + row * size.s3;
  for (long f = 0; f < size.s3; ++f) work[f] = 0;

  ACC largest = -INFINITY, total = 0;
  for (long start = 0; start < size.s1; start += BLOCK) {
    const int count = BLOCK == 1 ? 1 : (int)min((long)BLOCK, size.s1 - start);
    ACC score[BLOCK];
    ACC above = largest;
    for (int i = 0; i < count; ++i) {
      score[i] = score_of(q, k, mask, l, start + i, size, sm, scale);
      above = fmax(above, score[i]);
    }
    // A block that is masked altogether changes nothing; exp(-inf + inf) would be NaN. NaN itself
    // is not skipped: fmax passes over it, so it is looked for in the scores.
    const ACC base = above == -INFINITY ? (ACC)0 : above;
    const ACC shrink = exp(largest - base);
    total *= shrink;
    if (shrink != (ACC)1)
      for (long f = 0; f < size.s3; ++f) work[f] *= shrink;
    for (int i = 0; i < count; ++i) {
      const ACC weight = exp(score[i] - base);
      total += weight;
      __global const T* from = v + (start + i) * size.s3;
      if (weight != 0)
        for (long f = 0; f < size.s3; ++f) work[f] += weight * LOAD_T(from, f);
    }
    largest = above;
  }
  for (long f = 0; f < size.s3; ++f) STORE_T(y, f, size.s1 == 0 ? (ACC)0 : work[f] / total);
  lse[at.s5 + row] = largest + log(total);
}

#ifdef WG
// coalescing(attention_groups): items share the columns: neighbours read neighbours of v and write
// neighbours; the scores of a block of keys are each item's own row of k.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void attention_groups(
    __global const T* q, __global const T* k, __global const T* v, __global const M* mask,
    __global T* y, __global ACC* lse, __global ACC* work, long8 at, long4 size, long4 sm,
    long inner, ACC scale) {
  __local ACC score[WG];
  const int item = get_local_id(0);
  const long l = (long)get_group_id(0), z = (long)get_group_id(1);
  q += at.s0 + z * size.s0 * size.s2;
  k += at.s1 + z * size.s1 * size.s2;
  v += at.s2 + z * size.s1 * size.s3;
  mask += at.s3;
  mask = MASK_OF(z);
  const long row = z * size.s0 + l;
  y += at.s4 + row * size.s3;
  work += at.s6 + row * size.s3;
  // A work-item owns the columns item, item + WG, ...: nobody else touches them.
  for (long f = item; f < size.s3; f += WG) work[f] = 0;

  ACC largest = -INFINITY, total = 0;  // every item computes the same
  for (long start = 0; start < size.s1; start += WG) {
    const int count = (int)min((long)WG, size.s1 - start);
    if (item < count) score[item] = score_of(q, k, mask, l, start + item, size, sm, scale);
    barrier(CLK_LOCAL_MEM_FENCE);
    ACC above = largest;
    for (int i = 0; i < count; ++i) above = fmax(above, score[i]);
    const ACC base = above == -INFINITY ? (ACC)0 : above;
    const ACC shrink = exp(largest - base);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < count) score[item] = exp(score[item] - base);
    barrier(CLK_LOCAL_MEM_FENCE);
    total *= shrink;
    for (int i = 0; i < count; ++i) total += score[i];
    for (long f = item; f < size.s3; f += WG) {
      ACC sum = work[f] * shrink;
      for (int i = 0; i < count; ++i) {
        const ACC weight = score[i];
        if (weight != 0) sum += weight * LOAD_T(v, (start + i) * size.s3 + f);
      }
      work[f] = sum;
    }
    largest = above;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (long f = item; f < size.s3; f += WG) STORE_T(y, f, size.s1 == 0 ? (ACC)0 : work[f] / total);
  if (item == 0) lse[at.s5 + row] = largest + log(total);
}
#endif
