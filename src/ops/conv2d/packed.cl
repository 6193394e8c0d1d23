// Convolution for CPUs, a matrix product of filters (rows) and pixels (columns) whose right factor
// is never written out. A work-group is one work-item: it gathers the taps of NR = NV * VEC pixels,
// also across rows and images, into a panel in local memory, which there is ordinary memory that
// stays in the core's own cache, and multiplies `filters` filters with it, tile after tile. Pixels
// come from x itself or from a padded copy (pack.cl), so that no tap is tested.
// Dimensions: parts of the filters; panels; groups. Needs T and ACC, MR, NV, VEC and its macros,
// ACTIVATION; KC, the taps that a panel holds; CHUNKED when there are more of them: then the sums
// wait in `sums`, laid out as y, from chunk to chunk.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/matmul/panel_tile.cl"

#if CHUNKED
#define SUMS_PARAMETER , global ACC* sums
#if HAS_RESIDUAL
#define SUMS_AT at.s5
#else
#define SUMS_AT at.s4
#endif
#else
#define SUMS_PARAMETER
#endif

// `count` pixels, `step` apart in memory, from x[from]; nothing at or behind `limit` is read. May
// write up to VEC - 1 elements more than asked for.
void gather(local ACC* to, global const ACC* x, long from, long limit, long count, long step) {
  long i = 0;
  if (step == 1) {
    for (; i < count && from + i + VEC <= limit; i += VEC)
      STORE_LANES(VLOAD(0, x + from + i), to + i);
  } else if (step == 2) {
    for (; i < count && from + 2 * i + 2 * VEC <= limit; i += VEC) {
      const ACCV low = VLOAD(0, x + from + 2 * i), high = VLOAD(1, x + from + 2 * i);
      STORE_LANES((ACCV)(low.even, high.even), to + i);
    }
  }
  for (; i < count; ++i) to[i] = x[from + i * step];
}

// A place in x or y: pixel q of row p of image n.
typedef struct {
  long n, p, q;
} Pixel;

// Taps [first_tap, first_tap + terms) of the pixels [first, first + columns) of all images.
// steps: of x, between images, channels, rows, taps down, taps across, pixels.
void pack_pixels(local ACC* panel, global const ACC* x, long8 steps, long limit, Pixel first,
                 long columns, int P, int Q, long first_tap, long terms, int R, int S) {
  long c = first_tap / (R * S), r = first_tap / S % R, s = first_tap % S;
  for (long k = 0; k < terms; ++k) {
    local ACC* to = panel + k * NR;
    const long tap = c * steps.s1 + r * steps.s3 + s * steps.s4;
    Pixel at = first;
    for (long done = 0; done < columns;) {
      const long count = min(columns - done, Q - at.q);
      gather(to + done, x, tap + at.n * steps.s0 + at.p * steps.s2 + at.q * steps.s5, limit, count,
             steps.s5);
      done += count;
      at.q = 0;
      if (++at.p == P) at.p = 0, ++at.n;
    }
    for (long j = columns; j < NR; ++j) to[j] = (ACC)0;
    if (++s == S) {
      s = 0;
      if (++r == R) r = 0, ++c;
    }
  }
}

// steps.s6: of a group in x; s7: the elements of x.
// device(conv2d_packed): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void conv2d_packed(
    global const ACC* x, global const ACC* w, global const T* b,
    global T* y RESIDUAL_PARAMETER SUMS_PARAMETER, const long8 at, const int16 g, const long8 steps,
    const long filters, const int has_bias) {
  local ACC panel[KC * NR + VEC];
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
#if CHUNKED
  sums += SUMS_AT;
#endif
  GEOMETRY(g);
  const long Kg = K / GROUPS, taps = (long)(C / GROUPS) * R * S, pixels = (long)P * Q;
  const long group = get_global_id(2);
  const long begin = get_global_id(0) * filters, end = min(Kg, begin + filters);
  const long column = get_global_id(1) * NR, columns = min((long)NR, N * pixels - column);
  const Pixel first = {column / pixels, column % pixels / Q, column % Q};
  x += group * steps.s6;
  w += group * Kg * taps;
  for (long k0 = 0; k0 < taps; k0 += KC) {
    const long terms = min((long)KC, taps - k0);
    pack_pixels(panel, x, steps, steps.s7 - group * steps.s6, first, columns, P, Q, k0, terms, R,
                S);
    for (long row = begin; row < end; row += MR) {
      const long rows = min((long)MR, end - row);
      ACC tile[MR * NR];
      multiply_rows(w + row * taps + k0, taps, 1, rows, panel, terms, tile);
      for (long i = 0; i < rows; ++i) {
        const long k = group * Kg + row + i;
        const ACC bias = has_bias ? LOAD_T(b, k) : (ACC)0;
        long n = first.n, place = column - n * pixels;
        for (long done = 0; done < columns;) {
          const long count = min(columns - done, pixels - place);
          const long to = (n * K + k) * pixels + place;
          ACC* sum = tile + i * NR + done;
          done += count, ++n, place = 0;
#if CHUNKED
          if (k0 > 0)
            for (long j = 0; j < count; ++j) sum[j] += sums[to + j];
          if (k0 + KC < taps) {
            for (long j = 0; j < count; ++j) sums[to + j] = sum[j];
            continue;
          }
#endif
          for (long j = 0; j < count; ++j) FINISH(to + j, sum[j] + bias);
        }
      }
    }
  }
}
