// Batch normalisation as in batch.cl, in vectors (ops/softmax/vectors.cl), for CPUs. x is (outer,
// channels, span): the `span` elements of a channel lie one after the other and share its numbers.
//   batch_statistics, batch_sums  a work-item owns `block` channels
//   batch_apply, batch_folded, batch_dx  a work-item owns `block` rows of span elements; with span
//   1, `block` rows of one element of each channel
// Defines: those of vectors.cl.

#include "ops/softmax/vectors.cl"

// Sums over n neighbours: of x, of squared deviations, of products with them.
ACC sum_run(__global const T* x, long n) {
  if (n >= VEC) {
    SUM_VECTORS(total, FIRSTV(x, i));
    return total;
  }
  ACC total = 0;
  for (long i = 0; i < n; ++i) total += LOAD_T(x, i);
  return total;
}
ACC squares_run(__global const T* x, long n, ACC mean) {
  if (n >= VEC) {
    SUM_VECTORS(total, (LOADV(x, i) - mean) * (LOADV(x, i) - mean));
    return total;
  }
  ACC total = 0;
  for (long i = 0; i < n; ++i) total += (LOAD_T(x, i) - mean) * (LOAD_T(x, i) - mean);
  return total;
}
ACC along_run(__global const T* dy, __global const T* x, long n, ACC mean) {
  if (n >= VEC) {
    SUM_VECTORS(total, LOADV(dy, i) * (LOADV(x, i) - mean));
    return total;
  }
  ACC total = 0;
  for (long i = 0; i < n; ++i) total += LOAD_T(dy, i) * (LOAD_T(x, i) - mean);
  return total;
}

#define RUN(p, o) ((p) + ((o)*channels + row) * span)

__kernel void batch_statistics(__global const T* x, __global ACC* means, __global ACC* inverses,
                               long8 at, long outer, long channels, long span, ACC eps,
                               long block) {
  x += at.s0, means += at.s1, inverses += at.s2;
  const ACC count = (ACC)(outer * span);
  FOR_BLOCK(channels) {
    ACC sum = 0, squares = 0;
    for (long o = 0; o < outer; ++o) sum += sum_run(RUN(x, o), span);
    const ACC mean = sum / count;
    for (long o = 0; o < outer; ++o) squares += squares_run(RUN(x, o), span, mean);
    means[row] = mean;
    inverses[row] = (ACC)1 / sqrt(squares / count + eps);
  }
}

__kernel void batch_sums(__global const T* x, __global const ACC* means,
                         __global const ACC* inverses, __global const T* dy, __global T* dscale,
                         __global T* dshift, __global ACC* sums, long8 at, long outer,
                         long channels, long span, long block) {
  x += at.s0, means += at.s1, inverses += at.s2, dy += at.s3, dscale += at.s4, dshift += at.s5;
  sums += at.s6;
  const ACC count = (ACC)(outer * span);
  FOR_BLOCK(channels) {
    ACC total = 0, along = 0;
    for (long o = 0; o < outer; ++o) {
      total += sum_run(RUN(dy, o), span);
      along += along_run(RUN(dy, o), RUN(x, o), span, means[row]);
    }
    along *= inverses[row];
    STORE_T(dscale, row, along);
    STORE_T(dshift, row, total);
    sums[row] = along / count, sums[channels + row] = total / count;
  }
}

// ys[i] for n neighbours, from an expression in i for one element and one for a vector.
#define MAP_RUN(n, ys, one, vector)                         \
  {                                                         \
    long i = 0;                                             \
    for (; i + VEC <= (n); i += VEC) STOREV(ys, i, vector); \
    for (; i < (n); ++i) STORE_T(ys, i, one);               \
  }

__kernel void batch_apply(__global const T* x, __global const T* scale, __global const T* shift,
                          __global const ACC* means, __global const ACC* inverses, __global T* y,
                          long8 at, long rows, long channels, long span, long block) {
  x += at.s0, scale += at.s1, shift += at.s2, means += at.s3, inverses += at.s4, y += at.s5;
  FOR_BLOCK(rows) {
    if (span == 1) {
      __global const T* xs = x + row * channels;
      __global T* ys = y + row * channels;
#define ONE (LOAD_T(xs, i) - means[i]) * inverses[i] * LOAD_T(scale, i) + LOAD_T(shift, i)
#define MANY \
  (LOADV(xs, i) - VLOAD(0, means + i)) * VLOAD(0, inverses + i) * LOADV(scale, i) + LOADV(shift, i)
      MAP_RUN(channels, ys, ONE, MANY);
#undef ONE
#undef MANY
      continue;
    }
    __global const T* xs = x + row * span;
    __global T* ys = y + row * span;
    const long c = row % channels;
    const ACC mean = means[c], inverse = inverses[c], a = LOAD_T(scale, c), b = LOAD_T(shift, c);
    MAP_RUN(span, ys, (LOAD_T(xs, i) - mean) * inverse * a + b,
            (LOADV(xs, i) - mean) * inverse * a + b);
  }
}

ACCV relu_lanes(ACCV v, int relu) {
  const ACCV zero = (ACCV)(ACC)0;
  return relu ? (v <= zero ? zero : v) : v;
}
ACC relu_one(ACC v, int relu) { return relu && v <= (ACC)0 ? (ACC)0 : v; }

__kernel void batch_folded(__global const T* x, __global const T* scale, __global const T* shift,
                           __global const ACC* means, __global const ACC* variances, __global T* y,
                           long8 at, long rows, long channels, long span, int relu, ACC eps,
                           long block) {
  x += at.s0, scale += at.s1, shift += at.s2, means += at.s3, variances += at.s4, y += at.s5;
  FOR_BLOCK(rows) {
    if (span == 1) {
      __global const T* xs = x + row * channels;
      __global T* ys = y + row * channels;
#define ONE                                                                             \
  relu_one((LOAD_T(xs, i) - means[i]) * (LOAD_T(scale, i) / sqrt(variances[i] + eps)) + \
               LOAD_T(shift, i),                                                        \
           relu)
#define MANY                                                                   \
  relu_lanes((LOADV(xs, i) - VLOAD(0, means + i)) *                            \
                     (LOADV(scale, i) / sqrt(VLOAD(0, variances + i) + eps)) + \
                 LOADV(shift, i),                                              \
             relu)
      MAP_RUN(channels, ys, ONE, MANY);
      continue;
    }
    __global const T* xs = x + row * span;
    __global T* ys = y + row * span;
    const long c = row % channels;
    const ACC mean = means[c], a = LOAD_T(scale, c) / sqrt(variances[c] + eps);
    const ACC b = LOAD_T(shift, c);
    MAP_RUN(span, ys, relu_one((LOAD_T(xs, i) - mean) * a + b, relu),
            relu_lanes((LOADV(xs, i) - mean) * a + b, relu));
  }
}

__kernel void batch_dx(__global const T* x, __global const T* scale, __global const ACC* means,
                       __global const ACC* inverses, __global const T* dy, __global const ACC* sums,
                       __global T* dx, long8 at, long rows, long channels, long span, long block) {
  x += at.s0, scale += at.s1, means += at.s2, inverses += at.s3, dy += at.s4, sums += at.s5;
  dx += at.s6;
  FOR_BLOCK(rows) {
    const long runs = span == 1 ? channels : 1, first = span == 1 ? row * channels : row * span;
    for (long k = 0; k < runs; ++k) {
      const long c = span == 1 ? k : row % channels;
      __global const T *xs = x + first + k, *gs = dy + first + k;
      __global T* ds = dx + first + k;
      const ACC mean = means[c], inverse = inverses[c], factor = LOAD_T(scale, c) * inverse;
      const ACC share = sums[channels + c], slope = inverse * sums[c];
      MAP_RUN(span, ds, factor * (LOAD_T(gs, i) - share - (LOAD_T(xs, i) - mean) * slope),
              factor * (LOADV(gs, i) - share - (LOADV(xs, i) - mean) * slope));
    }
  }
}
