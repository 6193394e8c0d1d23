// Convolution for CPUs, a matrix product of filters (rows) and pixels (columns) whose right factor
// is never written out. A work-group is one work-item: chunk after chunk of the taps, it gathers
// those of cut.s1 panels of NR = NV * VEC pixels, also across rows and images, into local memory,
// which there is ordinary memory that stays in the core's own cache, and multiplies cut.s0 filters
// with them, tile after tile, strip by strip of cut.s3. Pixels come from x itself or from a padded
// copy (pack.cl), so that no tap is tested. Dimensions: parts of the filters; blocks of panels;
// groups. Needs T and ACC, MR, NV, VEC and its macros, ACTIVATION; PANEL_ELEMENTS of local memory.
// cut.s2: the taps of a chunk; between chunks the sums wait in y, or with OWN_SUMS, where y is
// rounded, in `sums`, which is laid out as y.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/matmul/panel_tile.cl"

#if OWN_SUMS
#define SUMS_PARAMETER , global ACC* sums
#if HAS_RESIDUAL
#define SUMS_AT at.s5
#else
#define SUMS_AT at.s4
#endif
#else
#define SUMS_PARAMETER
#endif

// `count` pixels, at most NR, `step` apart in memory, from x[from]; nothing at or behind `limit` is
// read. May write up to VEC - 1 elements more than asked for.
static inline void gather(local ACC* to, global const ACC* x, long from, long limit, long count,
                          long step) {
  long i = 0;
  if (step == 1) {
    for (; i < count && from + i + VEC <= limit; i += VEC)
      STORE_LOCAL(LOAD_GLOBAL(x + from + i), to + i);
  } else if (step == 2) {
    for (; i < count && from + 2 * i + 2 * VEC <= limit; i += VEC) {
      const ACCV low = LOAD_GLOBAL(x + from + 2 * i), high = LOAD_GLOBAL(x + from + 2 * i + VEC);
      STORE_LOCAL((ACCV)(low.even, high.even), to + i);
    }
  }
  for (; i < count; ++i) to[i] = x[from + i * step];
}

// A run of pixels, from column `column` of the panels on; `to` is the term's row of the first panel
// and `panel` the distance of two, which has room for a vector between them.
static inline void gather_run(local ACC* to, long panel, long column, global const ACC* x,
                              long from, long limit, long count, long step) {
  to += column / NR * panel;
  long lane = column % NR;
  while (count > 0) {
    if (lane == 0 && step == 1 && count >= NR) {
#pragma unroll
      for (int j = 0; j < NV; ++j) STORE_LOCAL(LOAD_GLOBAL(x + from + j * VEC), to + j * VEC);
      from += NR, count -= NR;
    } else {
      const long some = min(count, NR - lane);
      gather(to + lane, x, from, limit, some, step);
      from += some * step, count -= some;
    }
    lane = 0;
    to += panel;
  }
}

// A place in x or y: pixel q of row p of image n.
typedef struct {
  long n, p, q;
} Pixel;

// Taps [first_tap, first_tap + terms) of the pixels [first, first + columns) of all images into
// panels: tap after tap, so that memory is read in long runs.
// steps: of x, between images, channels, rows, taps down, taps across, pixels.
void pack_pixels(local ACC* panels, global const ACC* x, long8 steps, long limit, Pixel first,
                 long columns, int P, int Q, long first_tap, long terms, int R, int S) {
  long c = first_tap / (R * S), r = first_tap / S % R, s = first_tap % S;
  const long panel = terms * NR + VEC, end = (columns + NR - 1) / NR * NR;
  for (long k = 0; k < terms; ++k) {
    local ACC* to = panels + k * NR;
    const long tap = c * steps.s1 + r * steps.s3 + s * steps.s4;
    Pixel at = first;
    for (long done = 0; done < columns;) {
      const long count = min(columns - done, Q - at.q);
      gather_run(to, panel, done, x, tap + at.n * steps.s0 + at.p * steps.s2 + at.q * steps.s5,
                 limit, count, steps.s5);
      done += count;
      at.q = 0;
      if (++at.p == P) at.p = 0, ++at.n;
    }
    for (long j = columns; j < end; ++j) to[j / NR * panel + j % NR] = (ACC)0;
    if (++s == S) {
      s = 0;
      if (++r == R) r = 0, ++c;
    }
  }
}

// steps.s6: of a group in x; s7: the elements of x. cut: filters, panels and taps of a work-item.
// device(conv2d_packed): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void conv2d_packed(
    global const ACC* x, global const ACC* w, global const T* b,
    global T* y RESIDUAL_PARAMETER SUMS_PARAMETER, const long8 at, const int16 g, const long8 steps,
    const long4 cut, const int has_bias) {
  local ACC panels[PANEL_ELEMENTS];
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
#if OWN_SUMS
  global ACC* kept = sums + SUMS_AT;
#else
  global ACC* kept = (global ACC*)y;
#endif
  GEOMETRY(g);
  const long Kg = K / GROUPS, taps = (long)(C / GROUPS) * R * S, pixels = (long)P * Q;
  const long group = get_global_id(2);
  const long begin = get_global_id(0) * cut.s0, end = min(Kg, begin + cut.s0);
  const long first = get_global_id(1) * cut.s1 * NR, last = min(first + cut.s1 * NR, N * pixels);
  const Pixel pixel = {first / pixels, first % pixels / Q, first % Q};
  x += group * steps.s6;
  w += group * Kg * taps;
  for (long k0 = 0; k0 < taps; k0 += cut.s2) {
    const long terms = min((long)cut.s2, taps - k0);
    const bool more = k0 + terms < taps;
    pack_pixels(panels, x, steps, steps.s7 - group * steps.s6, pixel, last - first, P, Q, k0, terms,
                R, S);
    for (long top = begin; top < end; top += cut.s3) {
      const long bottom = min(top + cut.s3, end);
      local const ACC* panel = panels;
      long image = pixel.n, place = first - image * pixels;  // of column c
      for (long c = first; c < last; c += NR, place += NR, panel += terms * NR + VEC) {
        while (place >= pixels) place -= pixels, ++image;
        for (long row = top; row < bottom; row += MR) {
          const long columns = min((long)NR, last - c);
          const long rows = min((long)MR, end - row), k = group * Kg + row;
          Tile sum;
          clear_tile(&sum);
          multiply_tile(&sum, w + row * taps + k0, taps, 1, rows, panel, terms);
          const long to = (image * K + k) * pixels + place;
          if (columns == NR && place + NR <= pixels) {
            if (k0 > 0) {
              FOR_TILE(i, j) {
                if (i < rows) sum.of[i][j] += LOAD_GLOBAL(kept + to + i * pixels + j * VEC);
              }
            }
            if (more) {
              FOR_TILE(i, j) {
                if (i < rows) STORE_GLOBAL(sum.of[i][j], kept + to + i * pixels + j * VEC);
              }
            } else {
#pragma unroll
              for (int i = 0; i < MR; ++i) {
                if (i >= rows) break;
                const ACC bias = has_bias ? LOAD_T(b, k + i) : (ACC)0;
#pragma unroll
                for (int j = 0; j < NV; ++j)
                  FINISH_LANES(to + i * pixels + j * VEC, sum.of[i][j] + bias);
              }
            }
            continue;
          }
          ACC tile[MR * NR];
          keep_tile(&sum, tile);
          for (long i = 0; i < rows; ++i) {
            const ACC bias = has_bias ? LOAD_T(b, k + i) : (ACC)0;
            // The columns of one image after those of the other.
            long first_of_image = to + i * pixels, left = pixels - place;
            for (long done = 0; done < columns;) {
              const long count = min(columns - done, left);
              const ACC* values = tile + i * NR + done;
              if (!more && k0 == 0) {
                for (long j = 0; j < count; ++j) FINISH(first_of_image + j, values[j] + bias);
              } else {
                for (long j = 0; j < count; ++j) {
                  const ACC value = values[j] + (k0 > 0 ? kept[first_of_image + j] : (ACC)0);
                  if (more)
                    kept[first_of_image + j] = value;
                  else
                    FINISH(first_of_image + j, value + bias);
                }
              }
              done += count;
              first_of_image += left + (K - 1) * pixels;
              left = pixels;
            }
          }
        }
      }
    }
  }
}
