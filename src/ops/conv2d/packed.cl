// Convolution for CPUs, a matrix product of filters (rows) and pixels (columns) whose right factor
// is never written out. A work-group is one work-item: chunk after chunk of the taps, it gathers
// those of cut.s1 panels of NR = NV * VEC pixels, also across rows and images, into local memory,
// which there is ordinary memory that stays in the core's own cache, and multiplies cut.s0 filters
// with them, tile after tile, strip by strip of cut.s3. Dimensions: parts of the filters; blocks of
// panels; groups. Needs T and ACC, MR, NV, VEC and its macros, ACTIVATION; PANEL_ELEMENTS of local
// memory. cut.s2: the taps of a chunk; between chunks the sums wait in y, or with OWN_SUMS, where y
// is rounded, in `sums`, which is laid out as y. STREAMS: results go past the caches where they lie
// at multiples of a vector.
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

// The rows of a tile of the kernel below, all of whose columns lie in one image.
#define FINISH_ROWS(put)                                     \
  _Pragma("unroll") for (int i = 0; i < MR; ++i) {           \
    if (i >= rows) break;                                    \
    const ACC bias = has_bias ? LOAD_T(b, k + i) : (ACC)0;   \
    _Pragma("unroll") for (int j = 0; j < NV; ++j)           \
        put(to + i * pixels + j * VEC, sum.of[i][j] + bias); \
  }

// `count` pixels, at most NR, `step` apart in memory, from x[from]; nothing at or behind `limit` is
// read. May write up to VEC - 1 elements more than asked for. Memory `ahead` is needed soon.
static inline void gather(local ACC* to, global const T* x, long from, long limit, int count,
                          long step, long ahead) {
  int i = 0;
  if (step == 1) {
    for (; i < count && from + i + VEC <= limit; i += VEC) {
      FETCH(x + from + i + ahead);
      STORE_LOCAL(LOADV(x, from + i), to + i);
    }
  } else if (step == 2) {
    for (; i < count && from + 2 * i + 2 * VEC <= limit; i += VEC) {
      FETCH(x + from + 2 * i + ahead);
      FETCH(x + from + 2 * i + VEC + ahead);
      const ACCV low = LOADV(x, from + 2 * i), high = LOADV(x, from + 2 * i + VEC);
      STORE_LOCAL(even_lanes(low, high), to + i);
    }
  }
  for (; i < count; ++i) to[i] = LOAD_T(x, from + i * step);
}

// The same, zeros.
static inline void clear(local ACC* to, int count) {
  for (int i = 0; i < count; i += VEC) STORE_LOCAL((ACCV)0, to + i);
}

// Neighbours in a row of the result and in one panel: their place in the panels, how many they are,
// where the first one's window begins in the image, and where that would be in x.
typedef struct {
  int to, count, h, w;
  long from;
} Run;
#define MOST_RUNS (2 * NR)
#define NOWHERE (-(1 << 30))  // a row outside of any image

// A place in y: pixel q of row p of image n.
typedef struct {
  long n, p, q;
} Pixel;

// The pixels from `at` on, which is column `done` of `columns`, as runs: of whole panels, as many
// as fit, what lies behind the last column included. Returns how many columns they are.
// steps: of x, between images, channels, rows, taps down, taps across, pixels.
int find_runs(Run* runs, int* count, Pixel* at, int done, int columns, int panel, int16 g,
              long8 steps) {
  GEOMETRY(g);
  const int begin = done;
  for (*count = 0; done < columns && *count + NR <= MOST_RUNS;) {
    const int end = min(columns, done + NR), to = done / NR * panel;
    for (int lane = 0; done < end;) {
      const int some = min(end - done, (int)(Q - at->q));
      const int h = at->p * STRIDE_H - PAD_H, w = at->q * STRIDE_W - PAD_W;
      const Run run = {to + lane, some, h, w, at->n * steps.s0 + (long)h * W + w};
      runs[(*count)++] = run;
      done += some, lane += some, at->q += some;
      if (at->q == Q) {
        at->q = 0;
        if (++at->p == P) at->p = 0, ++at->n;
      }
    }
    if (done % NR != 0) {
      const Run behind = {to + done % NR, NR - done % NR, NOWHERE, 0, 0};
      runs[(*count)++] = behind;
    }
  }
  return done - begin;
}

// Taps [tap0, tap0 + terms) of the pixels [first, first + columns) of all images into
// panels, which have room for a vector between them: tap after tap, so that memory is read in long
// runs.
void pack_pixels(local ACC* panels, global const T* x, long8 steps, long limit, Pixel first,
                 int columns, int16 g, long tap0, long terms) {
  GEOMETRY(g);
  Run runs[MOST_RUNS];
  // Taps of a channel see the same rows; the next ones are far away.
  const long ahead = steps.s1 * (R * S == 1 ? 4 : 1);
  for (int done = 0, count; done < columns;) {
    done += find_runs(runs, &count, &first, done, columns, terms * NR + VEC, g, steps);
    long c = tap0 / (R * S), r = tap0 / S % R, s = tap0 % S;
    for (long k = 0; k < terms; ++k) {
      const long tap = c * steps.s1 + r * steps.s3 + s * steps.s4;
      const int down = r * DIL_H, across = s * DIL_W;
      for (int i = 0; i < count; ++i) {
        const Run run = runs[i];
        local ACC* to = panels + k * NR + run.to;
        const int h = run.h + down, w = run.w + across;
        if (h < 0 || h >= H) {
          clear(to, run.count);
        } else if (w >= 0 && w + (run.count - 1) * STRIDE_W < W) {
          gather(to, x, run.from + tap, limit, run.count, steps.s5, ahead);
        } else {
          const int left = min(first_tap(w, STRIDE_W), run.count);
          const int right = max(end_tap(w, STRIDE_W, W, run.count), left);
          clear(to, left);
          gather(to + left, x, run.from + tap + left * steps.s5, limit, right - left, steps.s5,
                 ahead);
          clear(to + right, run.count - right);
        }
      }
      if (++s == S) {
        s = 0;
        if (++r == R) r = 0, ++c;
      }
    }
  }
}

// A few columns behind the last whole panel would fill little of another one: their sums are
// vectors of terms instead, of NV columns at a time. At most so many:
#define THIN (VEC / 2)

// Taps [tap0, tap0 + terms) of one pixel of all images.
void pack_column(local ACC* to, global const T* x, long8 steps, long column, int16 g, long tap0,
                 long terms) {
  GEOMETRY(g);
  const long pixels = (long)P * Q, n = column / pixels, p = column % pixels / Q, q = column % Q;
  const int h0 = p * STRIDE_H - PAD_H, w0 = q * STRIDE_W - PAD_W;
  long c = tap0 / (R * S), r = tap0 / S % R, s = tap0 % S;
  global const T* from = x + n * steps.s0 + (long)h0 * W + w0;
  for (long k = 0; k < terms; ++k) {
    const int h = h0 + r * DIL_H, w = w0 + s * DIL_W;
    const bool inside = h >= 0 && h < H && w >= 0 && w < W;
    to[k] = inside ? LOAD_T(from, c * steps.s1 + r * steps.s3 + s * steps.s4) : (ACC)0;
    if (++s == S) {
      s = 0;
      if (++r == R) r = 0, ++c;
    }
  }
}

// A row of the left factor times one column.
static inline ACC sum_lanes(const ACCV v) {
  ACC lanes[VEC];
  STORE_LANES(v, lanes);
#pragma unroll
  for (int half_of = VEC / 2; half_of > 0; half_of /= 2)
#pragma unroll
    for (int i = 0; i < half_of; ++i) lanes[i] += lanes[i + half_of];
  return lanes[0];
}

// result (MR, NV) = a (rows, terms) columns (NV, terms), of which `count` are there.
static inline void multiply_columns(ACC* result, global const Left* a, long row, long rows,
                                    local const ACC* columns, int count, long terms) {
  LEFT_ROWS(from, a, row, rows);
  local const ACC* column[NV];
#pragma unroll
  for (int j = 0; j < NV; ++j) column[j] = columns + min(j, count - 1) * LEFT_TERMS;
  Tile sum;
  clear_tile(&sum);
  long k = 0;
  for (; k + VEC <= terms; k += VEC) {
    ACCV values[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) values[j] = LOAD_LOCAL(column[j] + k);
#pragma unroll
    for (int i = 0; i < MR; ++i) {
      const ACCV factors = LOAD_GLOBAL(from[i] + k);
#pragma unroll
      for (int j = 0; j < NV; ++j) sum.of[i][j] = MULTIPLY_ADD(factors, values[j], sum.of[i][j]);
    }
  }
  FOR_TILE(i, j) result[i * NV + j] = sum_lanes(sum.of[i][j]);
  for (; k < terms; ++k) FOR_TILE(i, j)
  result[i * NV + j] = MULTIPLY_ADD(from[i][k], column[j][k], result[i * NV + j]);
}

// steps.s6: of a group in x; s7: the elements of x. cut: filters, panels and taps of a work-item.
// thin: columns behind the last panel.
// device(conv2d_packed): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void conv2d_packed(
    global const T* x, global const ACC* w, global const T* b,
    global T* y RESIDUAL_PARAMETER SUMS_PARAMETER, const long8 at, const int16 g, const long8 steps,
    const long4 cut, const int has_bias, const int thin) {
  local ACC panels[PANEL_ELEMENTS];
  local ACC columns_behind[THIN * LEFT_TERMS];
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
  const long all = N * pixels;
  const long first = get_global_id(1) * cut.s1 * NR;
  const long last = min(first + cut.s1 * NR, all - thin);
  const Pixel pixel = {first / pixels, first % pixels / Q, first % Q};
  x += group * steps.s6;
  w += group * Kg * taps;
  // Of an image whose pixels are columns as they are, the first tile makes the panel on its way,
  // and the others fetch the next one, each its share.
  const bool plain = R * S == 1 && P == 1 && PAD_H == 0 && PAD_W == 0 && STRIDE_W == 1;
  for (long k0 = 0; k0 < taps; k0 += cut.s2) {
    const long terms = min((long)cut.s2, taps - k0);
    const long share = terms / max((min(cut.s3, end - begin) + MR - 1) / MR - 1, 1L) + 1;
    const bool more = k0 + terms < taps;
    const long limit = steps.s7 - group * steps.s6;
    if (!plain) pack_pixels(panels, x, steps, limit, pixel, last - first, g, k0, terms);
    const int behind = last == all - thin ? thin : 0;
    for (int j = 0; j < behind; ++j)
      pack_column(columns_behind + j * LEFT_TERMS, x, steps, last + j, g, k0, terms);
    for (long top = begin; top < end; top += cut.s3) {
      const long bottom = min(top + cut.s3, end);
      local ACC* panel = panels;
      long image = pixel.n, place = first - image * pixels;  // of column c
      for (long c = first; c < last; c += NR, place += NR, panel += terms * NR + VEC) {
        while (place >= pixels) place -= pixels, ++image;
        const long columns = min((long)NR, last - c);
        const bool inside = columns == NR && place + NR <= pixels;
        const bool new_panel = plain && top == begin;
        global const T* from = x + image * steps.s0 + k0 * steps.s1 + place;
        if (new_panel && !inside) {
          const Pixel behind = {image, 0, place};
          pack_pixels(panel, x, steps, limit, behind, columns, g, k0, terms);
        }
        // Terms of the next panel that wait in the core's cache.
        long fetched = new_panel && place + 2 * NR <= pixels ? 0 : terms;
        for (long row = top; row < bottom; row += MR) {
          const long rows = min((long)MR, end - row), k = group * Kg + row;
          const long to = (image * K + k) * pixels + place;
#if !STREAMS
          // The results' lines come while they are computed.
          FOR_TILE(i, j) FETCH_TO_WRITE(y + to + i * pixels + j * VEC);
#endif
          Tile sum;
          clear_tile(&sum);
          global const ACC* factors = w + row * taps + k0;
          if (new_panel && inside && row == top) {
            multiply_and_pack(&sum, factors, taps, 1, rows, panel, terms, from, steps.s1);
          } else {
            for (const long until = min(fetched + share, terms); fetched < until; ++fetched)
              for (int j = 0; j < NV; ++j) FETCH_NEAR(from + NR + fetched * steps.s1 + j * VEC);
            multiply_tile(&sum, factors, taps, 1, rows, panel, terms);
          }
          if (inside) {
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
#if STREAMS
              if ((size_t)(y + to) % sizeof(ACCV) == 0) {
                FINISH_ROWS(STREAM_LANES)
                continue;
              }
#endif
              FINISH_ROWS(FINISH_LANES)
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
      for (int j0 = 0; j0 < behind; j0 += NV)
        for (long row = top; row < bottom; row += MR) {
          const long rows = min((long)MR, end - row);
          ACC sums_of[MR * NV];
          multiply_columns(sums_of, w + row * taps + k0, taps, rows,
                           columns_behind + j0 * LEFT_TERMS, behind - j0, terms);
          for (long i = 0; i < rows; ++i) {
            const long k = group * Kg + row + i;
            const ACC bias = has_bias ? LOAD_T(b, k) : (ACC)0;
            for (int j = 0; j < min(NV, behind - j0); ++j) {
              const long column = last + j0 + j;
              const long to = (column / pixels * K + k) * pixels + column % pixels;
              const ACC value = sums_of[i * NV + j] + (k0 > 0 ? kept[to] : (ACC)0);
              if (more)
                kept[to] = value;
              else
                FINISH(to, value + bias);
            }
          }
        }
    }
  }
}
