// softmax, log_softmax and their gradients over the rows of x (rows, n), in vectors (vectors.cl).
// Values as in softmax.cl. Defines: those of vectors.cl; SAME where T is ACC.

#include "ops/softmax/gradients.cl"
#define LOOSE
#include "ops/softmax/vectors.cl"

// Where y holds ACC it also holds the exponentials on the way.
#ifdef SAME
#define KEEP(i, e) STOREV(ys, i, e)
#define KEPT(i) LOADV(ys, i)
#else
#define KEEP(i, e)
#define KEPT(i) exp_vector(LOADV(xs, i) - top)
#endif

void softmax_few(__global const T* xs, __global T* ys, long n) {
  const ACCV v = load_few(xs, n, (ACC)(-INFINITY));
  const ACC top = largest_lane(v);
  const ACCV e = first_lanes(exp_vector(v - top), (ACCV)0, n);
  store_few(e / sum_lanes(e), ys, n);
}

void softmax_row(__global const T* xs, __global T* ys, long n) {
  MAX_VECTORS(top, FIRSTV(xs, i));
  const ACCV last = exp_vector(LOADV(xs, REST) - top);
  ACCV s0 = (ACCV)(ACC)0, s1 = s0;
  long i = 0;
  for (; i + 2 * VEC <= n; i += 2 * VEC) {
    const ACCV a = exp_vector(LOADV(xs, i) - top), b = exp_vector(LOADV(xs, i + VEC) - top);
    KEEP(i, a);
    KEEP(i + VEC, b);
    s0 += a, s1 += b;
  }
  if (i + VEC <= n) {
    const ACCV a = exp_vector(LOADV(xs, i) - top);
    KEEP(i, a);
    s0 += a;
  }
  if (HAS_REST) s1 += last_lanes(last, (ACCV)(ACC)0, n % VEC);
  const ACC factor = (ACC)1 / sum_lanes(s0 + s1);
  FOR_VECTORS(k) STOREV(ys, k, KEPT(k) * factor);
  if (HAS_REST) STOREV(ys, REST, last * factor);
}

// VEC rows of n < VEC elements, a lane each.
void softmax_lanes(__global const T* xs, __global T* ys, long n) {
  ACCV e[VEC], top = (ACCV)(ACC)(-INFINITY), sum = (ACCV)(ACC)0;
  for (long i = 0; i < n; ++i) {
    e[i] = LOAD_ROWS(xs + i, n);
    top = LARGER(e[i], top);
  }
  for (long i = 0; i < n; ++i) {
    e[i] = exp_vector(e[i] - top);
    sum += e[i];
  }
  const ACCV factor = (ACC)1 / sum;
  for (long i = 0; i < n; ++i) store_rows(e[i] * factor, ys + i, n);
}

__kernel void softmax(__global const T* x, __global T* y, long8 at, long rows, long n, long block) {
  x += at.s0, y += at.s1;
  BLOCK_OF(rows);
  if (n < VEC)
    for (; row + VEC <= last_row; row += VEC) softmax_lanes(x + row * n, y + row * n, n);
  for (; row < last_row; ++row) {
    if (n < VEC)
      softmax_few(x + row * n, y + row * n, n);
    else
      softmax_row(x + row * n, y + row * n, n);
  }
}

void log_softmax_few(__global const T* xs, __global T* ys, long n) {
  const ACCV v = load_few(xs, n, (ACC)(-INFINITY));
  const ACC top = largest_lane(v);
  const ACC sum = sum_lanes(first_lanes(exp_vector(v - top), (ACCV)0, n));
  store_few((v - top) - log(sum), ys, n);
}

void log_softmax_row(__global const T* xs, __global T* ys, long n) {
  MAX_VECTORS(top, FIRSTV(xs, i));
  SUM_VECTORS(sum, exp_vector(LOADV(xs, i) - top));
  const ACC shift = log(sum);
  const ACCV last = LOADV(xs, REST);
  FOR_VECTORS(i) STOREV(ys, i, (LOADV(xs, i) - top) - shift);
  if (HAS_REST) STOREV(ys, REST, (last - top) - shift);
}

void log_softmax_lanes(__global const T* xs, __global T* ys, long n) {
  ACCV v[VEC], top = (ACCV)(ACC)(-INFINITY), sum = (ACCV)(ACC)0;
  for (long i = 0; i < n; ++i) {
    v[i] = LOAD_ROWS(xs + i, n);
    top = LARGER(v[i], top);
  }
  for (long i = 0; i < n; ++i) sum += exp_vector(v[i] - top);
  const ACCV shift = log(sum);
  for (long i = 0; i < n; ++i) store_rows((v[i] - top) - shift, ys + i, n);
}

__kernel void log_softmax(__global const T* x, __global T* y, long8 at, long rows, long n,
                          long block) {
  x += at.s0, y += at.s1;
  BLOCK_OF(rows);
  if (n < VEC)
    for (; row + VEC <= last_row; row += VEC) log_softmax_lanes(x + row * n, y + row * n, n);
  for (; row < last_row; ++row) {
    if (n < VEC)
      log_softmax_few(x + row * n, y + row * n, n);
    else
      log_softmax_row(x + row * n, y + row * n, n);
  }
}

#define BACKWARD(name, TERM, DX)                                                             \
  __kernel void name(__global const T* y, __global const T* dy, __global T* dx, long8 at,    \
                     long rows, long n, long block) {                                        \
    y += at.s0, dy += at.s1, dx += at.s2;                                                    \
    FOR_BLOCK(rows) {                                                                        \
      __global const T *ys = y + row * n, *gs = dy + row * n;                                \
      __global T* ds = dx + row * n;                                                         \
      if (n < VEC) {                                                                         \
        const ACCV v = load_short(ys, n, (ACC)0, ROOM), g = load_short(gs, n, (ACC)0, ROOM); \
        const ACC sum = sum_lanes(TERM(v, g));                                               \
        store_short(DX(v, g, sum), ds, n, ROOM);                                             \
      } else {                                                                               \
        SUM_VECTORS(sum, TERM(FIRSTV(ys, i), FIRSTV(gs, i)));                                \
        STORE_ROW(ds, DX(LOADV(ys, i), LOADV(gs, i), sum));                                  \
      }                                                                                      \
    }                                                                                        \
  }

BACKWARD(softmax_backward, SOFTMAX_TERM, SOFTMAX_DX)
BACKWARD(log_softmax_backward, LOG_SOFTMAX_TERM, LOG_SOFTMAX_DX)
