// Cross entropy over rows of logits (rows, n), a team per row (see team.cl). From labels: the loss
// is log(sum(exp(x))) - x[label], mixed with the mean over all classes by `smoothing`; rows whose
// label is `ignored` give 0. A label out of range gives NaN and its row in bad[0].
// Defines: T, ACC and those of team.cl.

#include "ops/softmax/team.cl"

#define X(i) LOAD_T(x, row* n + (i))

// coalescing(cross_entropy, cross_entropy_backward, cross_entropy_probabilities): a group strides
// through its row by its size; an item alone only has rows of under 64 elements.
__kernel void cross_entropy(__global const T* x, __global const long* labels, __global T* losses,
                            __global int* bad, long8 at, long rows, long n, ACC smoothing,
                            long ignored) {
  TEAM_MEMORY;
  x += at.s0, labels += at.s1, losses += at.s2, bad += at.s3;
  GUARD_ROW(rows);
  const long row = ROW;
  const long label = labels[row];
  const bool counts = label != ignored, is_bad = counts && (label < 0 || label >= n);
  MAX_ROW(top, X(i));
  SUM_ROW(sum, exp(X(i) - top));
  // Without smoothing, classes other than the label's may be -inf.
  SUM_ROW(all, smoothing != (ACC)0 ? X(i) - top : (ACC)0);
  if (ITEM > 0) return;
  if (is_bad) atomic_min(bad, (int)min(row, (long)INT_MAX - 1));
  ACC loss = counts ? (ACC)NAN : (ACC)0;
  if (counts && !is_bad) {
    // Relative to the largest, as the sum is.
    const ACC target = X(label) - top;
    loss =
        log(sum) -
        (smoothing != (ACC)0 ? ((ACC)1 - smoothing) * target + smoothing * all / (ACC)n : target);
  }
  STORE_T(losses, row, loss);
}

// dx = dlosses * (softmax(x) - target)
__kernel void cross_entropy_backward(__global const T* x, __global const long* labels,
                                     __global const T* dlosses, __global T* dx, long8 at, long rows,
                                     long n, ACC smoothing, long ignored) {
  TEAM_MEMORY;
  x += at.s0, labels += at.s1, dlosses += at.s2, dx += at.s3;
  GUARD_ROW(rows);
  const long row = ROW;
  const long label = labels[row];
  MAX_ROW(top, X(i));
  SUM_ROW(sum, exp(X(i) - top));
  const ACC dy = LOAD_T(dlosses, row), share = smoothing / (ACC)n;
  FOR_ROW(i) {
    const ACC target = share + (i == label ? (ACC)1 - smoothing : (ACC)0);
    STORE_T(dx, row * n + i, label == ignored ? (ACC)0 : dy * (exp(X(i) - top) / sum - target));
  }
}

// sum(p * (log(sum(exp(x))) - x)); a class of probability 0 adds nothing, also at -inf.
__kernel void cross_entropy_probabilities(__global const T* x, __global const T* p,
                                          __global T* losses, long8 at, long rows, long n) {
  TEAM_MEMORY;
  x += at.s0, p += at.s1, losses += at.s2;
  GUARD_ROW(rows);
  const long row = ROW;
  MAX_ROW(top, X(i));
  SUM_ROW(sum, exp(X(i) - top));
  const ACC shift = log(sum);
  SUM_ROW(loss, LOAD_T(p, row * n + i) == (ACC)0 ? (ACC)0
                                                 : LOAD_T(p, row * n + i) * (shift - (X(i) - top)));
  if (ITEM == 0) STORE_T(losses, row, loss);
}
