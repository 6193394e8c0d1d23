// layer_norm, rms_norm and group_norm: rows of n elements are brought to mean 0 and variance 1
// (with RMS only to mean square 1), then scaled and shifted per channel. Row r belongs to group r %
// groups; its element i to channel r % groups * (n / span) + i / span. A layer norm has one group
// and span 1. A team owns a row (ops/softmax/team.cl). Statistics are taken in two passes.
//   norm_forward    y
//   norm_backward   dx from dy; writes the row's mean and inverse deviation for norm_parameters
//   norm_parameters a work-item owns a channel and a part of the batch: its share of dscale, dshift
// Defines: T, ACC, RMS (0 or 1) and those of team.cl.

#include "ops/softmax/team.cl"

#define X(i) LOAD_T(x, row* n + (i))
#define DY(i) LOAD_T(dy, row* n + (i))
#define CHANNEL(i) (row % groups * (n / span) + (i) / span)

#if RMS
#define STATISTICS               \
  const ACC mean = 0;            \
  SUM_ROW(squares, X(i) * X(i)); \
  const ACC inverse = (ACC)1 / sqrt(squares / (ACC)n + eps)
#else
#define STATISTICS                                 \
  SUM_ROW(sum, X(i));                              \
  const ACC mean = sum / (ACC)n;                   \
  SUM_ROW(squares, (X(i) - mean) * (X(i) - mean)); \
  const ACC inverse = (ACC)1 / sqrt(squares / (ACC)n + eps)
#endif

// occupancy(norm_backward): an item alone adds in four places at once, which takes 66 registers in
// float64.
// coalescing(norm_forward, norm_backward): a group strides through its row by its size; an item
// alone only has rows of under 64 elements.
__kernel void norm_forward(__global const T* x, __global const T* scale, __global const T* shift,
                           __global T* y, long8 at, long rows, long n, long groups, long span,
                           int has_scale, int has_shift, ACC eps) {
  TEAM_MEMORY;
  x += at.s0, scale += at.s1, shift += at.s2, y += at.s3;
  GUARD_ROW(rows);
  const long row = ROW;
  STATISTICS;
  FOR_ROW(i) {
    ACC v = (X(i) - mean) * inverse;
    if (has_scale) v *= LOAD_T(scale, CHANNEL(i));
    if (has_shift) v += LOAD_T(shift, CHANNEL(i));
    STORE_T(y, row * n + i, v);
  }
}

#define SCALED(i) (has_scale ? DY(i) * LOAD_T(scale, CHANNEL(i)) : DY(i))

__kernel void norm_backward(__global const T* x, __global const T* scale, __global const T* dy,
                            __global T* dx, __global ACC* means, __global ACC* inverses, long8 at,
                            long rows, long n, long groups, long span, int has_scale, ACC eps) {
  TEAM_MEMORY;
  x += at.s0, scale += at.s1, dy += at.s2, dx += at.s3, means += at.s4, inverses += at.s5;
  GUARD_ROW(rows);
  const long row = ROW;
  STATISTICS;
#if RMS
  const ACC share = 0;
#else
  SUM_ROW(total, SCALED(i));
  const ACC share = total / (ACC)n;
#endif
  SUM_ROW(along, SCALED(i) * (X(i) - mean));
  const ACC slope = along * inverse / (ACC)n;
  FOR_ROW(i)
  STORE_T(dx, row * n + i, inverse * (SCALED(i) - share - (X(i) - mean) * inverse * slope));
  if (ITEM == 0) means[row] = mean, inverses[row] = inverse;
}

// sums (2, parts, channels): the sums over batch entries part, part + parts, ...
// coalescing(norm_parameters): neighbouring items own neighbouring channels, which are neighbours
// in memory where span is 1; else each walks its span.
__kernel void norm_parameters(__global const T* x, __global const T* dy, __global const ACC* means,
                              __global const ACC* inverses, __global ACC* sums, long8 at, long rows,
                              long n, long groups, long span, long parts) {
  x += at.s0, dy += at.s1, means += at.s2, inverses += at.s3, sums += at.s4;
  const long channels = groups * (n / span), id = get_global_id(0);
  if (id >= channels * parts) return;
  const long channel = id % channels, part = id / channels;
  const long group = channel / (n / span), first = channel % (n / span) * span;
  ACC dscale = 0, dshift = 0;
  for (long row = part * groups + group; row < rows; row += parts * groups) {
    ACC along = 0, total = 0;
    for (long i = first; i < first + span; ++i) {
      along += DY(i) * (X(i) - means[row]);
      total += DY(i);
    }
    dscale += along * inverses[row];
    dshift += total;
  }
  sums[part * channels + channel] = dscale;
  sums[(parts + part) * channels + channel] = dshift;
}
