// layer_norm, rms_norm and group_norm as in rows.cl, in vectors (ops/softmax/vectors.cl): a
// work-item owns `block` rows. norm_backward also takes the sums over its rows for the parameters:
// sums (2, parts, channels), of dscale and of dshift, a part per work-item. Defines: those of
// vectors.cl, RMS (0 or 1).

#include "ops/softmax/vectors.cl"

#define FILLED(p, i, filled) ((filled) ? LOADV(p, i) : (ACCV)(ACC)1)

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

// dx = inverse (g - share - normal x * slope), g being dy times the scale.
typedef struct {
  ACC share, slope;
} Slopes;
#define DX(v, g) (s.inverse * ((g)-to.share - ((v)-s.mean) * s.inverse * to.slope))

// One row with a scale per element (or none); adds to dscale and dshift.
void backward_elements(__global const T* xs, __global const T* scale, __global const T* gs,
                       __global T* ds, __global ACC* dscale, __global ACC* dshift, long n,
                       Statistics s) {
  Slopes to = {(ACC)0, (ACC)0};
  if (n < VEC) {
    const ACCV v = load_few(xs, n, (ACC)0), dy = load_few(gs, n, (ACC)0);
    const ACCV g = scale ? dy * load_few(scale, n, (ACC)0) : dy;
#if !RMS
    to.share = sum_lanes(g) / (ACC)n;
#endif
    to.slope = sum_lanes(g * (v - s.mean)) * s.inverse / (ACC)n;
    store_few(DX(v, g), ds, n);
    ACC lanes[VEC], normal[VEC];
    STORE_LANES(dy, lanes);
    STORE_LANES(dy * NORMAL(v), normal);
    for (long i = 0; i < n; ++i) dscale[i] += normal[i], dshift[i] += lanes[i];
    return;
  }
#define G(i) (LOADV(gs, i) * FILLED(scale, i, scale))
#if !RMS
  SUM_VECTORS(total, G(i));
  to.share = total / (ACC)n;
#endif
  SUM_VECTORS(along, G(i) * (LOADV(xs, i) - s.mean));
  to.slope = along * s.inverse / (ACC)n;
  const ACCV last_x = LOADV(xs, REST), last_dy = LOADV(gs, REST), last_g = G(REST);
  FOR_VECTORS(i) {
    const ACCV v = LOADV(xs, i), dy = LOADV(gs, i), g = dy * FILLED(scale, i, scale);
    STOREV(ds, i, DX(v, g));
    STORE_LANES(VLOAD(0, dscale + i) + dy * NORMAL(v), dscale + i);
    STORE_LANES(VLOAD(0, dshift + i) + dy, dshift + i);
  }
  if (!HAS_REST) return;
  STOREV(ds, REST, DX(last_x, last_g));
  const ACCV zero = (ACCV)(ACC)0;
  STORE_LANES(VLOAD(0, dscale + REST) + last_lanes(last_dy * NORMAL(last_x), zero, n % VEC),
              dscale + REST);
  STORE_LANES(VLOAD(0, dshift + REST) + last_lanes(last_dy, zero, n % VEC), dshift + REST);
#undef G
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
  const ACCV last = DX(LOADV(xs, REST), LOADV(gs, REST) * scale);
  FOR_VECTORS(i) STOREV(ds, i, DX(LOADV(xs, i), LOADV(gs, i) * scale));
  if (HAS_REST) STOREV(ds, REST, last);
}

__kernel void norm_backward(__global const T* x, __global const T* scale, __global const T* dy,
                            __global T* dx, __global ACC* sums, long8 at, long rows, long n,
                            long groups, long span, int has_scale, ACC eps, long block,
                            long parts) {
  x += at.s0, scale += at.s1, dy += at.s2, dx += at.s3, sums += at.s4;
  const long channels = n / span, all = groups * channels, part = get_global_id(0);
  __global ACC *dscale = sums + part * all, *dshift = sums + (parts + part) * all;
  for (long i = 0; i < all; ++i) dscale[i] = dshift[i] = (ACC)0;
  FOR_BLOCK(rows) {
    __global const T *xs = x + row * n, *gs = dy + row * n;
    const Statistics s = statistics_of(xs, n, eps);
    const long first = row % groups * channels;
    if (span == 1) {
      backward_elements(xs, has_scale ? scale + first : 0, gs, dx + row * n, dscale + first,
                        dshift + first, n, s);
      continue;
    }
    ACC total = 0, along = 0;
    for (long c = 0; c < channels; ++c) {
      const ACC2 here = channel_sums(xs + c * span, gs + c * span, span, s.mean);
      const ACC factor = has_scale ? LOAD_T(scale, first + c) : (ACC)1;
      dshift[first + c] += here.x;
      dscale[first + c] += here.y * s.inverse;
      total += here.x * factor, along += here.y * factor;
    }
    Slopes to = {RMS ? (ACC)0 : total / (ACC)n, along * s.inverse / (ACC)n};
    for (long c = 0; c < channels; ++c)
      backward_channel(xs + c * span, has_scale ? LOAD_T(scale, first + c) : (ACC)1, gs + c * span,
                       dx + row * n + c * span, span, s, to);
  }
}
