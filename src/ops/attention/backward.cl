// Gradients of attention.cl: weights are computed again from the scores and `lse`.
//   attention_backward_q   one work-item per query l:  dq[l] = sum over s of ds[l, s] k[s] * scale
//   attention_backward_kv  one work-item per key s:    dv[s] = sum over l of p[l, s] dy[l]
//                                                      dk[s] = sum over l of ds[l, s] q[l] * scale
// with p = exp(score - lse) and ds = p (dy[l] v[s] - delta[l]), delta[l] = dy[l] y[l] - dlse[l].
// Sums run in ACC memory (`work`: dq, or dk and dv), one row per work-item.

#include "ops/attention/attention.cl"

// occupancy(attention_backward_q, attention_backward_kv): as attention_rows.
// coalescing(attention_backward_q): as attention_rows: keys and values are the same for all items
// of a group, sums each item's own row.
__kernel void attention_backward_q(__global const T* q, __global const T* k, __global const T* v,
                                   __global const M* mask, __global const ACC* lse,
                                   __global const ACC* delta, __global const T* dy,
                                   __global ACC* dq, long8 at, long4 size, long4 sm, long inner,
                                   ACC scale) {
  const long l = (long)get_global_id(0), z = (long)get_global_id(1);
  if (l >= size.s0) return;
  const long row = z * size.s0 + l;
  q += at.s0 + z * size.s0 * size.s2;
  k += at.s1 + z * size.s1 * size.s2;
  v += at.s2 + z * size.s1 * size.s3;
  mask += at.s3;
  mask = MASK_OF(z);
  dy += at.s6 + row * size.s3;
  dq += at.s7 + row * size.s2;
  for (long e = 0; e < size.s2; ++e) dq[e] = 0;
  for (long s = 0; s < size.s1; ++s) {
    const ACC score = score_of(q, k, mask, l, s, size, sm, scale);
    if (score == -INFINITY) continue;
    const ACC p = exp(score - lse[at.s4 + row]);
    const ACC ds = p * (dot_rows(dy, v + s * size.s3, size.s3) - delta[at.s5 + row]) * scale;
    for (long e = 0; e < size.s2; ++e) dq[e] += ds * LOAD_T(k, s * size.s2 + e);
  }
}

// coalescing(attention_backward_kv): as attention_rows, with queries and their gradients the same
// for all items of a group.
__kernel void attention_backward_kv(__global const T* q, __global const T* k, __global const T* v,
                                    __global const M* mask, __global const ACC* lse,
                                    __global const ACC* delta, __global const T* dy,
                                    __global ACC* dkv, long8 at, long4 size, long4 sm, long inner,
                                    ACC scale) {
  const long s = (long)get_global_id(0), z = (long)get_global_id(1);
  if (s >= size.s1) return;
  q += at.s0 + z * size.s0 * size.s2;
  k += at.s1 + z * size.s1 * size.s2;
  v += at.s2 + z * size.s1 * size.s3;
  mask += at.s3;
  mask = MASK_OF(z);
  lse += at.s4 + z * size.s0;
  delta += at.s5 + z * size.s0;
  dy += at.s6 + z * size.s0 * size.s3;
  __global ACC* dk = dkv + at.s7 + (z * size.s1 + s) * (size.s2 + size.s3);
  __global ACC* dv = dk + size.s2;
  for (long e = 0; e < size.s2 + size.s3; ++e) dk[e] = 0;
  for (long l = 0; l < size.s0; ++l) {
    const ACC score = score_of(q, k, mask, l, s, size, sm, scale);
    if (score == -INFINITY) continue;
    const ACC p = exp(score - lse[l]);
    const ACC ds = p * (dot_rows(dy + l * size.s3, v + s * size.s3, size.s3) - delta[l]) * scale;
    for (long e = 0; e < size.s2; ++e) dk[e] += ds * LOAD_T(q, l * size.s2 + e);
    for (long f = 0; f < size.s3; ++f) dv[f] += p * LOAD_T(dy, l * size.s3 + f);
  }
}
