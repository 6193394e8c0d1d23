// layer_norm, rms_norm and group_norm as in rows.cl, in vectors (ops/softmax/vectors.cl): a
// work-item owns `block` rows. norm_backward also takes the sums over its rows for the parameters
// where they are wanted: sums (2, parts, channels), of dscale and of dshift, a part per work-item.
// Defines: those of vectors.cl, RMS (0 or 1); for norm_backward SCALED and PARAMETERS (0 or 1).
// device(norm_forward, norm_backward): CPU

#define LOOSE
#include "ops/softmax/vectors.cl"

typedef struct {
  ACC mean, inverse;
} Statistics;

Statistics statistics_of(__global const T* xs, long n, ACC eps) {
  Statistics s = {(ACC)0, (ACC)0};
  ACC squares;
  if (n < VEC) {
    const ACCV v = load_few(xs, n, (ACC)0);
#if !RMS
    s.mean = sum_lanes(v) / (ACC)n;
#endif
    const ACCV d = first_lanes(v - s.mean, (ACCV)(ACC)0, n);
    squares = sum_lanes(d * d);
  } else {
#if !RMS
    SUM_VECTORS(sum, FIRSTV(xs, i));
    s.mean = sum / (ACC)n;
#endif
    SUM_VECTORS(all, (LOADV(xs, i) - s.mean) * (LOADV(xs, i) - s.mean));
    squares = all;
  }
  s.inverse = (ACC)1 / sqrt(squares / (ACC)n + eps);
  return s;
}

#define NORMAL(v) (((v)-s.mean) * s.inverse)

// A scale and a shift per element.
void forward_elements(__global const T* xs, __global const T* scale, __global const T* shift,
                      __global T* ys, long n, Statistics s) {
  if (n < VEC) {
    ACCV v = NORMAL(load_few(xs, n, (ACC)0));
    if (scale) v *= load_few(scale, n, (ACC)0);
    if (shift) v += load_few(shift, n, (ACC)0);
    store_few(v, ys, n);
    return;
  }
  ACCV last = NORMAL(LOADV(xs, REST));
  if (scale) last *= LOADV(scale, REST);
  if (shift) last += LOADV(shift, REST);
  if (scale && shift) {
    FOR_VECTORS(i) STOREV(ys, i, NORMAL(LOADV(xs, i)) * LOADV(scale, i) + LOADV(shift, i));
  } else if (scale) {
    FOR_VECTORS(i) STOREV(ys, i, NORMAL(LOADV(xs, i)) * LOADV(scale, i));
  } else if (shift) {
    FOR_VECTORS(i) STOREV(ys, i, NORMAL(LOADV(xs, i)) + LOADV(shift, i));
  } else {
    FOR_VECTORS(i) STOREV(ys, i, NORMAL(LOADV(xs, i)));
  }
  if (HAS_REST) STOREV(ys, REST, last);
}

// VEC rows of n < VEC elements, a lane each.
void forward_lanes(__global const T* xs, __global const T* scale, __global const T* shift,
                   __global T* ys, long n, ACC eps) {
  ACCV v[VEC], mean = (ACCV)(ACC)0, squares = mean;
  for (long i = 0; i < n; ++i) {
    v[i] = LOAD_ROWS(xs + i, n);
    mean += v[i];
  }
  mean = RMS ? (ACCV)(ACC)0 : mean / (ACC)n;
  for (long i = 0; i < n; ++i) squares += (v[i] - mean) * (v[i] - mean);
  const ACCV inverse = (ACC)1 / sqrt(squares / (ACC)n + eps);
  for (long i = 0; i < n; ++i) {
    ACCV r = (v[i] - mean) * inverse;
    if (scale) r *= LOAD_T(scale, i);
    if (shift) r += LOAD_T(shift, i);
    store_rows(r, ys + i, n);
  }
}

// One scale and one shift for n elements.
void forward_channel(__global const T* xs, ACC scale, ACC shift, __global T* ys, long n,
                     Statistics s) {
  if (n < VEC) {
    for (long i = 0; i < n; ++i) STORE_T(ys, i, NORMAL(LOAD_T(xs, i)) * scale + shift);
    return;
  }
  const ACCV last = NORMAL(LOADV(xs, REST)) * scale + shift;
  FOR_VECTORS(i) STOREV(ys, i, NORMAL(LOADV(xs, i)) * scale + shift);
  if (HAS_REST) STOREV(ys, REST, last);
}

__kernel void norm_forward(__global const T* x, __global const T* scale, __global const T* shift,
                           __global T* y, long8 at, long rows, long n, long groups, long span,
                           int has_scale, int has_shift, ACC eps, long block) {
  x += at.s0, scale += at.s1, shift += at.s2, y += at.s3;
  const long channels = n / span;
  BLOCK_OF(rows);
  if (n < VEC && span == 1 && groups == 1)
    for (; row + VEC <= last_row; row += VEC)
      forward_lanes(x + row * n, has_scale ? scale : 0, has_shift ? shift : 0, y + row * n, n, eps);
  for (; row < last_row; ++row) {
    __global const T* xs = x + row * n;
    __global T* ys = y + row * n;
    const Statistics s = statistics_of(xs, n, eps);
    const long first = row % groups * channels;
    if (span == 1) {
      forward_elements(xs, has_scale ? scale + first : 0, has_shift ? shift + first : 0, ys, n, s);
      continue;
    }
    for (long c = 0; c < channels; ++c)
      forward_channel(xs + c * span, has_scale ? LOAD_T(scale, first + c) : (ACC)1,
                      has_shift ? LOAD_T(shift, first + c) : (ACC)0, ys + c * span, span, s);
  }
}

// dx = inverse (g - mean of g - normal x * mean of (g normal x)), g being dy times the scale. Of n
// elements of a row: `total`, the sum of g, and `along`, that of g (x - mean).
typedef struct {
  ACC share, slope;
} Slopes;
Slopes slopes_of(ACC total, ACC along, long n, Statistics s) {
  Slopes to = {RMS ? (ACC)0 : -s.inverse * (total / (ACC)n),
               -s.inverse * s.inverse * (along * s.inverse / (ACC)n)};
  return to;
}
#define DX(v, g) ((g)*s.inverse + (((v)-s.mean) * to.slope + to.share))

#if SCALED
#define GRADIENT(i) (LOADV(gs, i) * LOADV(scale, i))
#else
#define GRADIENT(i) LOADV(gs, i)
#endif

// Sums over a row of n >= VEC elements, two at once: the second is as far away as the first.
#define SUM_BOTH(a, first, b, second)                        \
  ACC a, b;                                                  \
  {                                                          \
    ACCV a0 = (ACCV)(ACC)0, a1 = a0, b0 = a0, b1 = a0;       \
    long at_vector = 0;                                      \
    for (; at_vector + 2 * VEC <= n; at_vector += 2 * VEC) { \
      long i = at_vector;                                    \
      a0 += (first), b0 += (second);                         \
      i += VEC;                                              \
      a1 += (first), b1 += (second);                         \
    }                                                        \
    if (at_vector + VEC <= n) {                              \
      const long i = at_vector;                              \
      a0 += (first), b0 += (second);                         \
    }                                                        \
    if (HAS_REST) {                                          \
      const long i = REST;                                   \
      const ACCV zero = (ACCV)(ACC)0;                        \
      a1 += last_lanes(first, zero, n % VEC);                \
      b1 += last_lanes(second, zero, n % VEC);               \
    }                                                        \
    a = sum_lanes(a0 + a1), b = sum_lanes(b0 + b1);          \
  }

#if PARAMETERS
// Adds what a row contributes to the gradients of scale and shift.
void add_parameters(__global const T* xs, __global const T* gs, __global ACC* dscale,
                    __global ACC* dshift, long n, Statistics s) {
  FOR_VECTORS(i) {
    const ACCV dy = LOADV(gs, i);
    STORE_LANES(VLOAD(0, dscale + i) + dy * NORMAL(LOADV(xs, i)), dscale + i);
    STORE_LANES(VLOAD(0, dshift + i) + dy, dshift + i);
  }
  if (!HAS_REST) return;
  const ACCV dy = last_lanes(LOADV(gs, REST), (ACCV)(ACC)0, n % VEC);
  const ACCV normal = last_lanes(NORMAL(LOADV(xs, REST)), (ACCV)(ACC)0, n % VEC);
  STORE_LANES(VLOAD(0, dscale + REST) + dy * normal, dscale + REST);
  STORE_LANES(VLOAD(0, dshift + REST) + dy, dshift + REST);
}
#endif

// One row with a scale per element (or none); adds to dscale and dshift.
void backward_elements(__global const T* xs, __global const T* scale, __global const T* gs,
                       __global T* ds, __global ACC* dscale, __global ACC* dshift, long n, ACC eps,
                       ACCV few_scale, long room) {
  Statistics s = {(ACC)0, (ACC)0};
  if (n < VEC) {
    const ACCV zero = (ACCV)(ACC)0;
    const ACCV v = load_short(xs, n, (ACC)0, room), dy = load_short(gs, n, (ACC)0, room);
    const ACCV g = SCALED ? dy * few_scale : dy;
    if (!RMS) s.mean = sum_lanes(v) / (ACC)n;
    const ACCV d = first_lanes(v - s.mean, zero, n);
    s.inverse = (ACC)1 / sqrt(sum_lanes(d * d) / (ACC)n + eps);
    const Slopes to = slopes_of(RMS ? (ACC)0 : sum_lanes(g), sum_lanes(g * d), n, s);
    store_short(DX(v, g), ds, n, room);
#if PARAMETERS
    ACC lanes[VEC], normal[VEC];
    STORE_LANES(dy, lanes);
    STORE_LANES(dy * NORMAL(v), normal);
    for (long i = 0; i < n; ++i) dscale[i] += normal[i], dshift[i] += lanes[i];
#endif
    return;
  }
  ACC g_total = 0;
#if !RMS
  SUM_BOTH(sum, FIRSTV(xs, i), total, GRADIENT(i));
  s.mean = sum / (ACC)n, g_total = total;
#endif
  SUM_BOTH(squares, (LOADV(xs, i) - s.mean) * (LOADV(xs, i) - s.mean), along,
           GRADIENT(i) * (LOADV(xs, i) - s.mean));
  s.inverse = (ACC)1 / sqrt(squares / (ACC)n + eps);
  const Slopes to = slopes_of(g_total, along, n, s);
  STORE_ROW(ds, DX(LOADV(xs, i), GRADIENT(i)));
#if PARAMETERS
  add_parameters(xs, gs, dscale, dshift, n, s);
#endif
}

// Sums over one channel of a row: of dy (x) and of dy (x - mean) (y).
ACC2 channel_sums(__global const T* xs, __global const T* gs, long n, ACC mean) {
  ACC2 sums;
  if (n < VEC) {
    const ACCV g = load_few(gs, n, (ACC)0);
    sums.x = sum_lanes(g);
    sums.y = sum_lanes(g * (load_few(xs, n, mean) - mean));
  } else {
    SUM_VECTORS(total, LOADV(gs, i));
    SUM_VECTORS(along, LOADV(gs, i) * (LOADV(xs, i) - mean));
    sums.x = total, sums.y = along;
  }
  return sums;
}

void backward_channel(__global const T* xs, ACC scale, __global const T* gs, __global T* ds, long n,
                      Statistics s, Slopes to) {
  if (n < VEC) {
    for (long i = 0; i < n; ++i) STORE_T(ds, i, DX(LOAD_T(xs, i), LOAD_T(gs, i) * scale));
    return;
  }
  STORE_ROW(ds, DX(LOADV(xs, i), LOADV(gs, i) * scale));
}

__kernel void norm_backward(__global const T* x, __global const T* scale, __global const T* dy,
                            __global T* dx, __global ACC* sums, long8 at, long rows, long n,
                            long groups, long span, ACC eps, long block, long parts) {
  x += at.s0, scale += at.s1, dy += at.s2, dx += at.s3, sums += at.s4;
  const long channels = n / span, all = groups * channels, part = get_global_id(0);
  __global ACC *dscale = sums + part * all, *dshift = sums + (parts + part) * all;
  if (PARAMETERS)
    for (long i = 0; i < all; ++i) dscale[i] = dshift[i] = (ACC)0;
  ACCV few_scale = (ACCV)(ACC)0;
  const long first_row = part * block;
  FOR_BLOCK(rows) {
    __global const T *xs = x + row * n, *gs = dy + row * n;
    const long first = row % groups * channels;
    if (span == 1) {
      if (SCALED && n < VEC && (groups > 1 || row == first_row))
        few_scale = load_few(scale + first, n, (ACC)0);
      backward_elements(xs, scale + first, gs, dx + row * n, dscale + first, dshift + first, n, eps,
                        few_scale, ROOM);
      continue;
    }
    const Statistics s = statistics_of(xs, n, eps);
    ACC total = 0, along = 0;
    for (long c = 0; c < channels; ++c) {
      const ACC2 here = channel_sums(xs + c * span, gs + c * span, span, s.mean);
      const ACC factor = SCALED ? LOAD_T(scale, first + c) : (ACC)1;
      if (PARAMETERS) dshift[first + c] += here.x, dscale[first + c] += here.y * s.inverse;
      total += here.x * factor, along += here.y * factor;
    }
    const Slopes to = slopes_of(total, along, n, s);
    for (long c = 0; c < channels; ++c)
      backward_channel(xs + c * span, SCALED ? LOAD_T(scale, first + c) : (ACC)1, gs + c * span,
                       dx + row * n + c * span, span, s, to);
  }
}
