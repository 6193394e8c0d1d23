// Convolutions of few channels for CPUs, vectors along the rows of the result: depthwise and thin
// groups, and with the filter turned around their gradients with respect to x and those of strided
// convolutions, one launch per phase of the stride. A work-group is one work-item: it copies the
// rows that its rows of the result see into local memory, padded and split by the phases of
// STEP_W, then computes TILE_ROWS rows x VEC pixels x FILTERS filters at a time in registers.
// Dimensions: blocks of rows; groups; images.
// Needs T and ACC, vector_macros, ACTIVATION; FILTER_ROWS x FILTER_COLUMNS taps, STEP_H, STEP_W,
// DILATION_H, DILATION_W; TILE_ROWS, FILTERS; ELEMENTS of local memory; DENSE: the pixels of a row
// of the result lie side by side; PLAIN: they are stored as they are, in the compute type.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/lanes.cl"

// Column s of the filter, in rows split into STEP_W phases of `phase` elements.
#define COLUMN(s) ((s)*DILATION_W % STEP_W * phase + (s)*DILATION_W / STEP_W)

// size: channels and filters of a group, H and W of x, rows P and columns Q, rows of a block,
// phase; pad: above and left; groups, has_bias. filter: elements of w between filters, channels,
// taps down, taps across, groups, and to the first tap. result: between planes, rows, pixels, to
// the first.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_planes(
    global const T* x, global const T* w, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int8 size, const int4 pad, const long8 filter, const long4 result) {
  local ACC rows[ELEMENTS];
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  const int Cg = size.s0, Kg = size.s1, H = size.s2, W = size.s3, Q = size.s5, phase = size.s7;
  const int p0 = get_group_id(0) * size.s6, p_end = min(size.s4, p0 + size.s6);
  const long group = get_group_id(1), n = get_group_id(2);
  const int pitch = STEP_W * phase;
  const int height = (p_end - p0 - 1) * STEP_H + (FILTER_ROWS - 1) * DILATION_H + 1;
  // As many rows as the last tile may look at.
  const long channel =
      ((size.s6 + TILE_ROWS - 1) * STEP_H + (FILTER_ROWS - 1) * DILATION_H + 1) * pitch;
  x += (n * pad.s2 + group) * Cg * H * W;
  for (int c = 0; c < Cg; ++c)
    for (int i = 0; i < height; ++i) {
      const int h = p0 * STEP_H - pad.s0 + i;
      const bool inside = h >= 0 && h < H;
      global const T* from = x + ((long)c * H + h) * W - pad.s1;
      local ACC* to = rows + c * channel + (long)i * pitch;
#if STEP_W == 1
      const int left = clamp(pad.s1, 0, phase), right = clamp(W + pad.s1, left, phase);
      copy_row(from, inside ? left : 0, inside ? right : 0, phase, to);
#else
      for (int f = 0; f < STEP_W; ++f)
        for (int j = 0; j < phase; ++j) {
          const int column = j * STEP_W + f - pad.s1;
          to[f * phase + j] =
              inside && column >= 0 && column < W ? LOAD_T(from, (long)j * STEP_W + f) : (ACC)0;
        }
#endif
    }
  w += group * filter.s4 + filter.s5;
  y += result.s3;
  MOVE_RESIDUAL(result.s3);
  for (int k0 = 0; k0 < Kg; k0 += FILTERS)
    for (int p = p0; p < p_end; p += TILE_ROWS)
      for (int start = 0; start < Q; start += VEC) {
        const int q = max(min(start, Q - VEC), 0);  // the last vector overlaps the one before
        ACCV sum[FILTERS][TILE_ROWS];
#pragma unroll
        for (int k = 0; k < FILTERS; ++k)
#pragma unroll
          for (int i = 0; i < TILE_ROWS; ++i) sum[k][i] = (ACCV)0;
        for (int c = 0; c < Cg; ++c) {
          local const ACC* from = rows + c * channel + (long)(p - p0) * STEP_H * pitch + q;
          global const T* weights = w + c * filter.s1;
#pragma unroll
          for (int r = 0; r < FILTER_ROWS; ++r)
#pragma unroll
            for (int s = 0; s < FILTER_COLUMNS; ++s) {
              // Rows that several taps see are read once: the compiler finds them.
              ACCV pixels[TILE_ROWS];
#pragma unroll
              for (int i = 0; i < TILE_ROWS; ++i)
                pixels[i] = VLOAD(0, from + (i * STEP_H + r * DILATION_H) * pitch + COLUMN(s));
#pragma unroll
              for (int k = 0; k < FILTERS; ++k) {
                const int one = min(k0 + k, Kg - 1);
                const ACCV weight =
                    (ACCV)(LOAD_T(weights, one * filter.s0 + r * filter.s2 + s * filter.s3));
#pragma unroll
                for (int i = 0; i < TILE_ROWS; ++i)
                  sum[k][i] = MULTIPLY_ADD(weight, pixels[i], sum[k][i]);
              }
            }
        }
#pragma unroll
        for (int k = 0; k < FILTERS; ++k) {
          const long plane = (n * pad.s2 + group) * Kg + k0 + k;
          const ACC bias = pad.s3 && k0 + k < Kg ? LOAD_T(b, group * Kg + k0 + k) : (ACC)0;
#pragma unroll
          for (int i = 0; i < TILE_ROWS; ++i) {
            if (k0 + k >= Kg || p + i >= p_end) continue;
            const long to = plane * result.s0 + (p + i) * result.s1 + q * result.s2;
            const ACCV value = sum[k][i] + (ACCV)(bias);
            ACC lanes[VEC];
            STORE_LANES(value, lanes);
            if (Q < VEC || !DENSE) {
              for (int l = start - q; l < min(VEC, Q - q); ++l)
                FINISH(to + l * result.s2, lanes[l]);
            } else {
#if PLAIN
              STORE_GLOBAL(value, y + to);
#else
              for (int l = 0; l < VEC; ++l) FINISH(to + l, lanes[l]);
#endif
            }
          }
        }
      }
}
