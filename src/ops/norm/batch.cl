// Batch normalisation of x (outer, channels, span): statistics per channel over outer and span.
//   batch_statistics  a team owns a channel: mean and inverse deviation, in two passes
//   batch_apply       a work-item owns LENGTH neighbours: (x - mean) * inverse * scale + shift
//   batch_naive       inference, a work-item per element
//   batch_folded      inference with the channel's numbers folded, a work-item per LENGTH
//   neighbours batch_sums        a team owns a channel: dscale and dshift batch_dx          a
//   work-item owns LENGTH neighbours of dx
// Defines: T, ACC, LENGTH, and those of team.cl.

#include "ops/softmax/team.cl"

// Element i of the channel.
#define AT(i) (((i) / span * channels + channel) * span + (i) % span)

// coalescing(batch_statistics, batch_sums): a group strides through the spans of its channel by its
// size.
__kernel void batch_statistics(__global const T* x, __global ACC* means, __global ACC* inverses,
                               long8 at, long outer, long channels, long span, ACC eps) {
  TEAM_MEMORY;
  x += at.s0, means += at.s1, inverses += at.s2;
  GUARD_ROW(channels);
  const long channel = ROW, n = outer * span;
  SUM_ROW(sum, LOAD_T(x, AT(i)));
  const ACC mean = sum / (ACC)n;
  SUM_ROW(squares, (LOAD_T(x, AT(i)) - mean) * (LOAD_T(x, AT(i)) - mean));
  if (ITEM > 0) return;
  means[channel] = mean;
  inverses[channel] = (ACC)1 / sqrt(squares / (ACC)n + eps);
}

// coalescing(batch_apply, batch_naive, batch_folded, batch_dx): neighbouring items own neighbouring
// elements (LENGTH is 1 on GPUs); the numbers of a channel are the same for most of a warp.
__kernel void batch_apply(__global const T* x, __global const T* scale, __global const T* shift,
                          __global const ACC* means, __global const ACC* inverses, __global T* y,
                          long8 at, long count, long channels, long span) {
  x += at.s0, scale += at.s1, shift += at.s2, means += at.s3, inverses += at.s4, y += at.s5;
  const long first = (long)get_global_id(0) * LENGTH, last = min(count, first + LENGTH);
  for (long i = first; i < last; ++i) {
    const long c = i / span % channels;
    STORE_T(y, i, (LOAD_T(x, i) - means[c]) * inverses[c] * LOAD_T(scale, c) + LOAD_T(shift, c));
  }
}

__kernel void batch_naive(__global const T* x, __global const T* scale, __global const T* shift,
                          __global const ACC* means, __global const ACC* variances, __global T* y,
                          long8 at, long count, long channels, long span, int relu, ACC eps) {
  x += at.s0, scale += at.s1, shift += at.s2, means += at.s3, variances += at.s4, y += at.s5;
  const long i = get_global_id(0);
  if (i >= count) return;
  const long c = i / span % channels;
  const ACC v =
      (LOAD_T(x, i) - means[c]) / sqrt(variances[c] + eps) * LOAD_T(scale, c) + LOAD_T(shift, c);
  STORE_T(y, i, relu && v <= (ACC)0 ? (ACC)0 : v);
}

__kernel void batch_folded(__global const T* x, __global const T* scale, __global const T* shift,
                           __global const ACC* means, __global const ACC* variances, __global T* y,
                           long8 at, long count, long channels, long span, int relu, ACC eps) {
  x += at.s0, scale += at.s1, shift += at.s2, means += at.s3, variances += at.s4, y += at.s5;
  const long first = (long)get_global_id(0) * LENGTH, last = min(count, first + LENGTH);
  long i = first;
  while (i < last) {
    const long c = i / span % channels, end = min(last, (i / span + 1) * span);
    const ACC a = LOAD_T(scale, c) / sqrt(variances[c] + eps);
    const ACC b = LOAD_T(shift, c), mean = means[c];
    for (; i < end; ++i) {
      const ACC v = (LOAD_T(x, i) - mean) * a + b;
      STORE_T(y, i, relu && v <= (ACC)0 ? (ACC)0 : v);
    }
  }
}

__kernel void batch_sums(__global const T* x, __global const ACC* means,
                         __global const ACC* inverses, __global const T* dy, __global T* dscale,
                         __global T* dshift, __global ACC* sums, long8 at, long outer,
                         long channels, long span) {
  TEAM_MEMORY;
  x += at.s0, means += at.s1, inverses += at.s2, dy += at.s3, dscale += at.s4, dshift += at.s5;
  sums += at.s6;
  GUARD_ROW(channels);
  const long channel = ROW, n = outer * span;
  const ACC mean = means[channel], inverse = inverses[channel];
  SUM_ROW(total, LOAD_T(dy, AT(i)));
  SUM_ROW(along, LOAD_T(dy, AT(i)) * (LOAD_T(x, AT(i)) - mean) * inverse);
  if (ITEM > 0) return;
  STORE_T(dscale, channel, along);
  STORE_T(dshift, channel, total);
  sums[channel] = along / (ACC)n, sums[channels + channel] = total / (ACC)n;
}

__kernel void batch_dx(__global const T* x, __global const T* scale, __global const ACC* means,
                       __global const ACC* inverses, __global const T* dy, __global const ACC* sums,
                       __global T* dx, long8 at, long count, long channels, long span) {
  x += at.s0, scale += at.s1, means += at.s2, inverses += at.s3, dy += at.s4, sums += at.s5;
  dx += at.s6;
  const long first = (long)get_global_id(0) * LENGTH, last = min(count, first + LENGTH);
  for (long i = first; i < last; ++i) {
    const long c = i / span % channels;
    const ACC inverse = inverses[c], normal = (LOAD_T(x, i) - means[c]) * inverse;
    STORE_T(dx, i,
            LOAD_T(scale, c) * inverse * (LOAD_T(dy, i) - sums[channels + c] - normal * sums[c]));
  }
}
