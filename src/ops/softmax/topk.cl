// The k largest (or smallest) of every row of x (outer, n, inner), best first; of equal values the
// first comes first, NaN counts as the largest. A team owns a row (see team.cl) and looks k times
// for the best element behind the one before: no memory beside the results. topk_backward puts dy
// back to the places. Defines: T, ACC and those of team.cl.

#include "ops/softmax/team.cl"

// Whether element a at i comes before element b at j; j < 0 is nothing.
bool comes_before(ACC a, long i, ACC b, long j, int largest) {
  if (j < 0) return true;
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a != nan_b) return largest ? nan_a : nan_b;
  if (nan_a || a == b) return i < j;
  return largest ? a > b : a < b;
}

// coalescing(topk): a group strides through its row by its size; results are k elements of a row.
__kernel void topk(__global const T* x, __global T* values, __global long* indices, long8 at,
                   long outer, long n, long inner, long k, int largest) {
#if defined(GROUP)
  __local ACC team_values[WG_MAX];
  __local long team_places[WG_MAX];
#endif
  x += at.s0, values += at.s1, indices += at.s2;
  GUARD_ROW(outer * inner);
  const long row = ROW;
  x += row / inner * n * inner + row % inner;
  const long out = row / inner * k * inner + row % inner;
  ACC last = 0;
  long last_place = -1;
  for (long r = 0; r < k; ++r) {
    ACC best = 0;
    long place = -1;
    FOR_ROW(i) {
      const ACC v = LOAD_T(x, i * inner);
      const bool is_behind = last_place < 0 || comes_before(last, last_place, v, i, largest);
      if (is_behind && i != last_place && comes_before(v, i, best, place, largest))
        best = v, place = i;
    }
#if defined(GROUP)
    team_values[ITEM] = best, team_places[ITEM] = place;
    for (long part = ITEMS / 2; part > 0; part /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      const long other = ITEM + part;
      if (ITEM < part && team_places[other] >= 0 &&
          comes_before(team_values[other], team_places[other], team_values[ITEM], team_places[ITEM],
                       largest))
        team_values[ITEM] = team_values[other], team_places[ITEM] = team_places[other];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    best = team_values[0], place = team_places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    last = best, last_place = place;
    if (ITEM == 0) {
      STORE_T(values, out + r * inner, best);
      indices[out + r * inner] = place;
    }
  }
}

// A work-item owns a row of dx (outer, n, inner).
// coalescing(topk_backward): neighbouring items write neighbours where inner > 1, else each its own
// row of dx: a gradient of few elements in many zeros.
__kernel void topk_backward(__global const T* dy, __global const long* indices, __global T* dx,
                            long8 at, long outer, long n, long inner, long k) {
  dy += at.s0, indices += at.s1, dx += at.s2;
  const long row = get_global_id(0);
  if (row >= outer * inner) return;
  dx += row / inner * n * inner + row % inner;
  const long from = row / inner * k * inner + row % inner;
  for (long i = 0; i < n; ++i) STORE_T(dx, i * inner, (ACC)0);
  for (long r = 0; r < k; ++r)
    STORE_T(dx, indices[from + r * inner] * inner, LOAD_T(dy, from + r * inner));
}
