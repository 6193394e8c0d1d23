// Convolutions of few channels for CPUs, vectors along the rows of the result: depthwise and thin
// groups, and with the filter turned around their gradients with respect to x. A work-group is one
// work-item: it copies the rows that its rows of the result see into local memory, padded and split
// by the phases of STEP_W, then computes TILE_ROWS rows x VECTORS vectors x FILTERS filters at a
// time in registers.
// Dimensions: blocks of rows; groups; images.
// Needs T and ACC, vector_macros, ACTIVATION; FILTER_ROWS x FILTER_COLUMNS taps, STEP_H, STEP_W,
// DILATION_H, DILATION_W; TILE_ROWS, VECTORS, FILTERS; ELEMENTS of local memory for rows and
// WEIGHTS for the taps of FILTERS filters; PLAIN: results are stored as they are, in the compute
// type; DIRECT: x may be read where it lies (planes_direct.cl).
#include "ops/conv2d/epilogue.cl"
#include "ops/lanes.cl"

#define UNIT (VECTORS * VEC)
#define TAPS (FILTER_ROWS * FILTER_COLUMNS)
#if DIRECT
#include "ops/conv2d/planes_direct.cl"
#endif
// Column s of the filter, in rows split into STEP_W phases of `phase` elements.
#define COLUMN(s) ((s)*DILATION_W % STEP_W * phase + (s)*DILATION_W / STEP_W)

// size: channels and filters of a group, H and W of x, rows P and columns Q, rows of a block,
// phase; pad: above and left; groups, has_bias. filter: elements of w between filters, channels,
// taps down, taps across, groups, and to the first tap.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_planes(
    global const T* x, global const T* w, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int8 size, const int4 pad, const long8 filter) {
  local ACC rows[ELEMENTS];
  local ACC weights[WEIGHTS];
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  const int Cg = size.s0, Kg = size.s1, H = size.s2, W = size.s3, Q = size.s5, phase = size.s7;
  const int p0 = get_group_id(0) * size.s6, p_end = min(size.s4, p0 + size.s6);
  const long group = get_group_id(1), n = get_group_id(2);
  const int pitch = STEP_W * phase;
  // All rows that the last tile looks at, also for results that are not there.
  const int height = ((p_end - p0 + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS - 1) * STEP_H +
                     (FILTER_ROWS - 1) * DILATION_H + 1;
  const long channel =
      ((size.s6 + TILE_ROWS - 1) * STEP_H + (FILTER_ROWS - 1) * DILATION_H + 1) * pitch;
  const long area = (long)size.s4 * Q;
  const long plane = n * pad.s2 + group, planes = get_num_groups(2) * pad.s2;
  x += plane * Cg * H * W;
#if DIRECT
  const bool direct =
      plane * H * W >= pad.s1 &&
      (planes - plane - 1) * H * W >= Q + (FILTER_COLUMNS - 1) * DILATION_W - pad.s1 - W;
#else
  const bool direct = false;
#endif
  for (int c = 0; c < Cg && !direct; ++c)
    for (int i = 0; i < height; ++i) {
      const int h = p0 * STEP_H - pad.s0 + i;
      copy_phases(x + ((long)c * H + h) * W, W, pad.s1, h >= 0 && h < H, phase,
                  rows + c * channel + (long)i * pitch);
    }
  w += group * filter.s4 + filter.s5;
  for (int k0 = 0; k0 < Kg; k0 += FILTERS) {
    for (int c = 0; c < Cg; ++c)
      for (int i = 0; i < FILTERS * TAPS; ++i) {
        const int k = min(k0 + i / TAPS, Kg - 1), r = i % TAPS / FILTER_COLUMNS;
        const int s = i % TAPS % FILTER_COLUMNS;
        weights[c * FILTERS * TAPS + i] =
            LOAD_T(w, k * filter.s0 + c * filter.s1 + r * filter.s2 + s * filter.s3);
      }
    ACC bias[FILTERS];
#pragma unroll
    for (int k = 0; k < FILTERS; ++k)
      bias[k] = pad.s3 ? LOAD_T(b, group * Kg + min(k0 + k, Kg - 1)) : (ACC)0;
#if DIRECT
    if (direct) {
      ACCV taps[FILTERS * TAPS], biases[FILTERS];
#pragma unroll
      for (int i = 0; i < FILTERS * TAPS; ++i) taps[i] = (ACCV)(weights[i]);
#pragma unroll
      for (int k = 0; k < FILTERS; ++k) biases[k] = (ACCV)(bias[k]);
      const long to = (plane * Kg + k0) * area;
      const long2 steps = (long2)(area, Q);
      MOVE_RESIDUAL(to);
      int q = 0;  // the last vectors overlap those before
      for (; q + VEC < Q && Q >= UNIT; q += UNIT)
        direct_columns(x, y + to RESIDUAL_ARGUMENT, p0, p_end, min(q, Q - UNIT), H, W, pad, steps,
                       taps, biases, Kg - k0, VECTORS);
      for (; q < Q; q += VEC)
        direct_columns(x, y + to RESIDUAL_ARGUMENT, p0, p_end, min(q, Q - VEC), H, W, pad, steps,
                       taps, biases, Kg - k0, 1);
      MOVE_RESIDUAL(-to);
      continue;
    }
#endif
    for (int p = p0; p < p_end; p += TILE_ROWS) {
      const long tile = (plane * Kg + k0) * area + (long)p * Q;
      // The next group's rows, which this core is likely to need next.
      for (int j = 0; j < TILE_ROWS * W; j += 64 / (int)sizeof(T))
        FETCH(x + (long)Cg * H * W + (long)p * W + j);
      const bool whole = Q >= UNIT && p + TILE_ROWS <= p_end && k0 + FILTERS <= Kg;
      local const ACC* first = rows + (long)(p - p0) * STEP_H * pitch;
      for (int start = 0; start < Q; start += UNIT) {
        const int q = max(min(start, Q - UNIT), 0);  // the last ones overlap those before
        ACCV sum[FILTERS][TILE_ROWS * VECTORS];
#pragma unroll
        for (int k = 0; k < FILTERS; ++k)
#pragma unroll
          for (int i = 0; i < TILE_ROWS * VECTORS; ++i) sum[k][i] = (ACCV)(bias[k]);
        for (int c = 0; c < Cg; ++c) {
          local const ACC* from = first + c * channel + q;
          local const ACC* taps = weights + c * (FILTERS * TAPS);
#pragma unroll
          for (int r = 0; r < FILTER_ROWS; ++r)
#pragma unroll
            for (int s = 0; s < FILTER_COLUMNS; ++s) {
              // Rows that several taps see are read once: the compiler finds them.
              ACCV pixels[TILE_ROWS * VECTORS];
#pragma unroll
              for (int i = 0; i < TILE_ROWS * VECTORS; ++i)
                pixels[i] = VLOAD(i % VECTORS, from + COLUMN(s) +
                                                   (i / VECTORS * STEP_H + r * DILATION_H) * pitch);
#pragma unroll
              for (int k = 0; k < FILTERS; ++k) {
                const ACCV weight = (ACCV)(taps[k * TAPS + r * FILTER_COLUMNS + s]);
#pragma unroll
                for (int i = 0; i < TILE_ROWS * VECTORS; ++i)
                  sum[k][i] = MULTIPLY_ADD(weight, pixels[i], sum[k][i]);
              }
            }
        }
#if PLAIN
        if (whole) {
#pragma unroll
          for (int k = 0; k < FILTERS; ++k)
#pragma unroll
            for (int i = 0; i < TILE_ROWS * VECTORS; ++i)
              STORE_GLOBAL(sum[k][i],
                           y + tile + k * area + i / VECTORS * Q + q + i % VECTORS * VEC);
          continue;
        }
#endif
#pragma unroll
        for (int k = 0; k < FILTERS; ++k)
#pragma unroll
          for (int i = 0; i < TILE_ROWS; ++i) {
            const long to = tile + k * area + i * Q + q;
            ACC lanes[UNIT];
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) STORE_LANES(sum[k][i * VECTORS + v], lanes + v * VEC);
            if (whole) {
              for (int l = 0; l < UNIT; ++l) FINISH(to + l, lanes[l]);
            } else if (k0 + k < Kg && p + i < p_end) {
              for (int l = start - q; l < min(UNIT, Q - q); ++l) FINISH(to + l, lanes[l]);
            }
          }
      }
    }
  }
}
