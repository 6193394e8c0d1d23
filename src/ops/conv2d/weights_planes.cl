// The gradient with respect to w of depthwise convolutions and thin groups, for CPUs: a work-group
// is one work-item, which owns the filter of one k and c and a part of the images. It copies the
// rows of x that rows of dy see into local memory (as planes.cl), then multiplies vectors along
// the rows; the sums of TAP_ROWS x FILTER_COLUMNS taps stay in registers.
// Dimensions: parts of the images; filters; channels of a group.
// One part writes dw itself, several write sums (parts, K, C / groups, R, S).
// Needs T and ACC, vector_macros, BITSV (integers as wide as ACCV); FILTER_ROWS, FILTER_COLUMNS,
// TAP_ROWS, WIDE (rows of dy are at least a vector), STEP_H, STEP_W, DILATION_H, DILATION_W;
// X_ELEMENTS and DY_ELEMENTS of local memory; DIRECT: rows are read where they lie, with
// mask_macros.
#include "ops/conv2d/geometry.cl"
#include "ops/lanes.cl"

#define TILE_ROWS 4
#if WIDE
#define DY global const T
#define LOAD_DY(p, i) LOADV(p, i)
#else
#define DY local const ACC
#define LOAD_DY(p, i) VLOAD(0, (p) + (i))
#endif
#define TAPS (FILTER_ROWS * FILTER_COLUMNS)
#define COLUMN(s) ((s)*DILATION_W % STEP_W * phase + (s)*DILATION_W / STEP_W)

// `count` rows of dy from `dy`. The last vector of a row overlaps the one before, or the end: lanes
// that do not count are masked in x, too, because of zero times infinity.
__attribute__((always_inline)) static inline void add_rows(local const ACC* x, DY* dy, ACCV* sums,
                                                           const int columns, const int pitch,
                                                           const int phase, const int dy_pitch,
                                                           const BITSV mask, const int count) {
  ACCV sum[TAP_ROWS * FILTER_COLUMNS];
#pragma unroll
  for (int i = 0; i < TAP_ROWS * FILTER_COLUMNS; ++i) sum[i] = sums[i];
  int q = 0;
  for (; q + VEC <= columns; q += VEC) {
    ACCV d[TILE_ROWS];
#pragma unroll
    for (int i = 0; i < count; ++i) d[i] = LOAD_DY(dy, i * dy_pitch + q);
#pragma unroll
    for (int r = 0; r < TAP_ROWS; ++r)
#pragma unroll
      for (int s = 0; s < FILTER_COLUMNS; ++s)
#pragma unroll
        for (int i = 0; i < count; ++i)
          sum[r * FILTER_COLUMNS + s] = MULTIPLY_ADD(
              d[i], VLOAD(0, x + (i * STEP_H + r * DILATION_H) * pitch + q + COLUMN(s)),
              sum[r * FILTER_COLUMNS + s]);
  }
  if (q < columns) {
    q = WIDE ? columns - VEC : 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const ACCV d = select((ACCV)0, LOAD_DY(dy, i * dy_pitch + q), mask);
#pragma unroll
      for (int r = 0; r < TAP_ROWS; ++r)
#pragma unroll
        for (int s = 0; s < FILTER_COLUMNS; ++s) {
          const ACCV pixels = VLOAD(0, x + (i * STEP_H + r * DILATION_H) * pitch + q + COLUMN(s));
          sum[r * FILTER_COLUMNS + s] =
              MULTIPLY_ADD(d, select((ACCV)0, pixels, mask), sum[r * FILTER_COLUMNS + s]);
        }
    }
  }
#pragma unroll
  for (int i = 0; i < TAP_ROWS * FILTER_COLUMNS; ++i) sums[i] = sum[i];
}

#if DIRECT
// A vector of columns of one image, of which all rows of x are read where they lie, also beside its
// edges: it goes down the rows of dy, with the rows of x that it sees and all sums in registers.
// `last`: it overlaps the one before, and only the lanes `counts` are new. next_x, next_dy: to the
// next image.
__attribute__((always_inline)) static inline void add_columns(global const T* x, global const T* dy,
                                                              ACCV* sums, const int16 g,
                                                              const int q, const BITSV counts,
                                                              const long next_x, const long next_dy,
                                                              const bool last) {
  GEOMETRY(g);
  ACCV sum[TAPS];
#pragma unroll
  for (int i = 0; i < TAPS; ++i) sum[i] = sums[i];
  BITSV masks[FILTER_COLUMNS];
  for (int s = 0; s < FILTER_COLUMNS; ++s)
    masks[s] = (last ? counts : (BITSV)(-1)) &
               lanes_between(PAD_W - q - s * DILATION_W, W + PAD_W - q - s * DILATION_W);
  ACCV seen[FILTER_ROWS][FILTER_COLUMNS];
#pragma unroll
  for (int r = 0; r < FILTER_ROWS - 1; ++r)
#pragma unroll
    for (int s = 0; s < FILTER_COLUMNS; ++s)
      seen[r][s] = r - PAD_H < 0 || r - PAD_H >= H
                       ? (ACCV)0
                       : MASKED(LOAD_PIXELS(x + (long)(r - PAD_H) * W + q - PAD_W + s * DILATION_W),
                                masks[s]);
  for (int first = 0; first < P; first += FILTER_ROWS)
#pragma unroll
    for (int turn = 0; turn < FILTER_ROWS; ++turn) {
      const int p = first + turn, h = p + FILTER_ROWS - 1 - PAD_H;
      if (p >= P) break;
      global const T* row = x + (long)h * W + q - PAD_W;
      ACCV* newest = seen[(turn + FILTER_ROWS - 1) % FILTER_ROWS];
      FETCH(row + next_x);
      FETCH(dy + (long)p * Q + q + next_dy);
      if (h >= 0 && h < H) {
#pragma unroll
        for (int s = 0; s < FILTER_COLUMNS; ++s) {
          newest[s] = LOAD_PIXELS(row + s * DILATION_W);
          if (last || LEAVES_LEFT(s) || LEAVES_RIGHT(s)) newest[s] = MASKED(newest[s], masks[s]);
        }
      } else {
#pragma unroll
        for (int s = 0; s < FILTER_COLUMNS; ++s) newest[s] = (ACCV)0;
      }
      ACCV d = LOAD_PIXELS(dy + (long)p * Q + q);
      if (last) d = MASKED(d, counts);
#pragma unroll
      for (int i = 0; i < TAPS; ++i)
        sum[i] = MULTIPLY_ADD(
            d, seen[(turn + i / FILTER_COLUMNS) % FILTER_ROWS][i % FILTER_COLUMNS], sum[i]);
    }
#pragma unroll
  for (int i = 0; i < TAPS; ++i) sums[i] = sum[i];
}
#endif

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void weights_planes(
    global const T* x, global const T* dy, global T* dw, global ACC* sums, const long8 at,
    const int16 g, const int parts, const int block_p, const int phase) {
  local ACC rows[X_ELEMENTS];
#if !WIDE
  local ACC dy_rows[DY_ELEMENTS];
#endif
  GEOMETRY(g);
  x += at.s0, dy += at.s1, dw += at.s2, sums += at.s3;
  const int Cg = C / GROUPS, Kg = K / GROUPS, part = get_group_id(0);
  const int k = get_group_id(1), c = get_group_id(2), group = k / Kg;
  const int pitch = STEP_W * phase, dy_pitch = WIDE ? Q : VEC;
  ACCV sum[TAPS];
#pragma unroll
  for (int i = 0; i < TAPS; ++i) sum[i] = (ACCV)0;
  const BITSV mask = WIDE ? lanes_between(VEC - Q % VEC, VEC) : lanes_between(0, Q);
  const int first = (long)N * part / parts, end = (long)N * (part + 1) / parts;
  for (long n = first; n < end; ++n) {
#if DIRECT
    const long plane = n * C + (long)group * Cg + c, behind = (long)N * C - plane - 1;
    if (plane * H * W >= PAD_W &&
        behind * H * W >= Q + (FILTER_COLUMNS - 1) * DILATION_W - PAD_W - W) {
      global const T* from = x + plane * H * W;
      global const T* from_dy = dy + (n * K + k) * P * Q;
      const long next_x = (long)C * H * W, next_dy = (long)K * P * Q;
      int q = 0;
      for (; q + VEC <= Q; q += VEC)
        add_columns(from, from_dy, sum, g, q, mask, next_x, next_dy, false);
      if (q < Q) add_columns(from, from_dy, sum, g, Q - VEC, mask, next_x, next_dy, true);
      continue;
    }
#endif
    for (int p0 = 0; p0 < P; p0 += block_p) {
      const int np = min(block_p, P - p0);
      const int height = (np - 1) * STEP_H + (FILTER_ROWS - 1) * DILATION_H + 1;
      for (int i = 0; i < height; ++i) {
        const int h = p0 * STEP_H - PAD_H + i;
        copy_phases(x + ((n * C + (long)group * Cg + c) * H + h) * W, W, PAD_W, h >= 0 && h < H,
                    phase, rows + i * pitch);
      }
#if WIDE
      DY* dy_rows = dy + ((n * K + k) * P + p0) * Q;
#else
      for (int i = 0; i < np; ++i)
        copy_row(dy + ((n * K + k) * P + p0 + i) * Q, 0, Q, dy_pitch, dy_rows + i * dy_pitch);
#endif
      // The same rows of the next image.
      global const T* next_x = x + ((n + 1) * C + (long)group * Cg + c) * H * W;
      global const T* next_dy = dy + ((n + 1) * K + k) * P * Q;
#pragma unroll
      for (int r = 0; r < FILTER_ROWS; r += TAP_ROWS) {
        local const ACC* from = rows + r * DILATION_H * pitch;
        int p = 0;
        for (; p + TILE_ROWS <= np; p += TILE_ROWS) {
          for (int j = 0; r == 0 && j < TILE_ROWS * Q; j += 64 / (int)sizeof(T)) {
            FETCH(next_dy + (long)(p0 + p) * Q + j);
            FETCH(next_x + (long)(p0 + p) * STEP_H * W + j * STEP_W);
          }
          add_rows(from + p * STEP_H * pitch, dy_rows + p * dy_pitch, sum + r * FILTER_COLUMNS, Q,
                   pitch, phase, dy_pitch, mask, TILE_ROWS);
        }
        for (; p < np; ++p)
          add_rows(from + p * STEP_H * pitch, dy_rows + p * dy_pitch, sum + r * FILTER_COLUMNS, Q,
                   pitch, phase, dy_pitch, mask, 1);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < TAPS; ++i) {
    ACC lanes[VEC], total = 0;
    STORE_LANES(sum[i], lanes);
    for (int l = 0; l < VEC; ++l) total += lanes[l];
    const long to = ((long)k * Cg + c) * TAPS + i;
    if (parts == 1)
      STORE_T(dw, to, total);
    else
      sums[(long)part * K * Cg * TAPS + to] = total;
  }
}
