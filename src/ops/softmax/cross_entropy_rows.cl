// Cross entropy over rows of logits (rows, n) as in cross_entropy.cl, in vectors (vectors.cl).

#define LOOSE
#include "ops/softmax/vectors.cl"

typedef struct {
  ACC top, sum;  // the largest element, and the sum of exp(x - top)
} Row;

Row row_of(__global const T* xs, long n, long room) {
  Row r;
  if (n < VEC) {
    const ACCV v = load_short(xs, n, (ACC)(-INFINITY), room);
    r.top = largest_lane(v);
    r.sum = sum_lanes(first_lanes(exp_vector(v - r.top), (ACCV)(ACC)0, n));
  } else {
    MAX_VECTORS(top, FIRSTV(xs, i));
    SUM_VECTORS(sum, exp_vector(LOADV(xs, i) - top));
    r.top = top, r.sum = sum;
  }
  return r;
}

// The sum of x - top.
ACC sum_below(__global const T* xs, long n, ACC top, long room) {
  if (n < VEC)
    return sum_lanes(first_lanes(load_short(xs, n, (ACC)0, room) - top, (ACCV)(ACC)0, n));
  SUM_VECTORS(all, LOADV(xs, i) - top);
  return all;
}

__kernel void cross_entropy(__global const T* x, __global const long* labels, __global T* losses,
                            __global int* bad, long8 at, long rows, long n, ACC smoothing,
                            long ignored, long block) {
  x += at.s0, labels += at.s1, losses += at.s2, bad += at.s3;
  FOR_BLOCK(rows) {
    __global const T* xs = x + row * n;
    const long label = labels[row];
    const bool counts = label != ignored, is_bad = counts && (label < 0 || label >= n);
    if (is_bad) atomic_min(bad, (int)min(row, (long)INT_MAX - 1));
    ACC loss = counts ? (ACC)NAN : (ACC)0;
    if (counts && !is_bad) {
      const Row r = row_of(xs, n, ROOM);
      const ACC target = LOAD_T(xs, label) - r.top;  // relative to the largest, as the sum is
      // Without smoothing, classes other than the label's may be -inf.
      loss =
          log(r.sum) - (smoothing != (ACC)0 ? ((ACC)1 - smoothing) * target +
                                                  smoothing * sum_below(xs, n, r.top, ROOM) / (ACC)n
                                            : target);
    }
    STORE_T(losses, row, loss);
  }
}

#define DX(v) (dy * (exp_vector((v)-r.top) / r.sum - share))

// dx of a row without its label.
void backward_row(__global const T* xs, __global T* ds, long n, ACC dy, ACC share, Row r,
                  long room) {
  if (n < VEC) {
    store_short(DX(load_short(xs, n, r.top, room)), ds, n, room);
    return;
  }
  STORE_ROW(ds, DX(LOADV(xs, i)));
}

__kernel void cross_entropy_backward(__global const T* x, __global const long* labels,
                                     __global const T* dlosses, __global T* dx, long8 at, long rows,
                                     long n, ACC smoothing, long ignored, long block) {
  x += at.s0, labels += at.s1, dlosses += at.s2, dx += at.s3;
  FOR_BLOCK(rows) {
    __global const T* xs = x + row * n;
    __global T* ds = dx + row * n;
    const long label = labels[row];
    if (label == ignored) {
      for (long i = 0; i < n; ++i) STORE_T(ds, i, (ACC)0);
      continue;
    }
    const bool has_label = label >= 0 && label < n;
    const Row r = row_of(xs, n, ROOM);
    const ACC dy = LOAD_T(dlosses, row), share = smoothing / (ACC)n;
    const ACC at_label = has_label ? LOAD_T(xs, label) : (ACC)0;
    backward_row(xs, ds, n, dy, share, r, ROOM);
    if (has_label)
      STORE_T(ds, label, dy * (exp(at_label - r.top) / r.sum - (share + ((ACC)1 - smoothing))));
  }
}

// A class of probability 0 adds nothing, also at -inf.
#define TERM(v, p) ((p) == (ACCV)(ACC)0 ? (ACCV)(ACC)0 : (p) * (shift - ((v)-r.top)))

__kernel void cross_entropy_probabilities(__global const T* x, __global const T* p,
                                          __global T* losses, long8 at, long rows, long n,
                                          long block) {
  x += at.s0, p += at.s1, losses += at.s2;
  FOR_BLOCK(rows) {
    __global const T *xs = x + row * n, *ps = p + row * n;
    const Row r = row_of(xs, n, ROOM);
    const ACC shift = log(r.sum);
    ACC loss;
    if (n < VEC) {
      loss = sum_lanes(TERM(load_short(xs, n, (ACC)0, ROOM), load_short(ps, n, (ACC)0, ROOM)));
    } else {
      SUM_VECTORS(total, TERM(LOADV(xs, i), LOADV(ps, i)));
      loss = total;
    }
    STORE_T(losses, row, loss);
  }
}
