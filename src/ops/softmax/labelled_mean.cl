// The mean of losses (n) over those whose label is not `ignored`, a team for all of them (see
// team.cl): the ignored ones are 0 already. Backward gives every loss the same share of dy.
// Defines: T, ACC and those of team.cl.

#include "ops/softmax/team.cl"

#define COUNTS(i) (labels[i] != ignored ? (ACC)1 : (ACC)0)

// coalescing(labelled_mean, labelled_mean_backward): a group strides through the losses by its
// size; an item alone only has under 64 of them.
__kernel void labelled_mean(__global const T* losses, __global const long* labels, __global T* y,
                            long8 at, long rows, long n, long ignored) {
  TEAM_MEMORY;
  losses += at.s0, labels += at.s1, y += at.s2;
  GUARD_ROW(rows);
  SUM_ROW(total, LOAD_T(losses, i));
  SUM_ROW(count, COUNTS(i));
  if (ITEM == 0) STORE_T(y, 0, total / count);
}

__kernel void labelled_mean_backward(__global const T* dy, __global const long* labels,
                                     __global T* dlosses, long8 at, long rows, long n,
                                     long ignored) {
  TEAM_MEMORY;
  dy += at.s0, labels += at.s1, dlosses += at.s2;
  GUARD_ROW(rows);
  SUM_ROW(count, COUNTS(i));
  const ACC share = LOAD_T(dy, 0) / count;
  FOR_ROW(i) STORE_T(dlosses, i, share);
}
