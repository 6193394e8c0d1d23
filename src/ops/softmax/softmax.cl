// softmax, log_softmax and their gradients over rows of x (outer, n, inner): a team owns a row (see
// team.cl). The largest element is subtracted first, so nothing overflows; a row with NaN, +inf, or
// nothing but -inf gives NaN. Defines: T, ACC and those of team.cl.

#include "ops/softmax/team.cl"

#define AT(i) (start + (i)*inner)
#define PLACE_ROW          \
  GUARD_ROW(outer* inner); \
  const long row = ROW;    \
  const long start = row / inner * n * inner + row % inner

// coalescing(softmax, log_softmax, softmax_backward, log_softmax_backward): a group strides through
// its row by its size; where an item owns a row, rows are short or side by side (inner >= 32), so
// that neighbours read neighbours or one line.
__kernel void softmax(__global const T* x, __global T* y, long8 at, long outer, long n,
                      long inner) {
  TEAM_MEMORY;
  x += at.s0, y += at.s1;
  PLACE_ROW;
  MAX_ROW(top, LOAD_T(x, AT(i)));
  SUM_ROW(sum, exp(LOAD_T(x, AT(i)) - top));
  FOR_ROW(i) STORE_T(y, AT(i), exp(LOAD_T(x, AT(i)) - top) / sum);
}

__kernel void log_softmax(__global const T* x, __global T* y, long8 at, long outer, long n,
                          long inner) {
  TEAM_MEMORY;
  x += at.s0, y += at.s1;
  PLACE_ROW;
  MAX_ROW(top, LOAD_T(x, AT(i)));
  SUM_ROW(sum, exp(LOAD_T(x, AT(i)) - top));
  const ACC shift = log(sum);
  FOR_ROW(i) STORE_T(y, AT(i), (LOAD_T(x, AT(i)) - top) - shift);
}

__kernel void softmax_backward(__global const T* y, __global const T* dy, __global T* dx, long8 at,
                               long outer, long n, long inner) {
  TEAM_MEMORY;
  y += at.s0, dy += at.s1, dx += at.s2;
  PLACE_ROW;
  SUM_ROW(dot_row, LOAD_T(y, AT(i)) * LOAD_T(dy, AT(i)));
  FOR_ROW(i) STORE_T(dx, AT(i), LOAD_T(y, AT(i)) * (LOAD_T(dy, AT(i)) - dot_row));
}

__kernel void log_softmax_backward(__global const T* y, __global const T* dy, __global T* dx,
                                   long8 at, long outer, long n, long inner) {
  TEAM_MEMORY;
  y += at.s0, dy += at.s1, dx += at.s2;
  PLACE_ROW;
  SUM_ROW(sum, LOAD_T(dy, AT(i)));
  FOR_ROW(i) STORE_T(dx, AT(i), LOAD_T(dy, AT(i)) - exp(LOAD_T(y, AT(i))) * sum);
}
