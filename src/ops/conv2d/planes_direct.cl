// The part of planes.cl for rows that are read where they lie: one channel a group, a step of 1,
// rows of at least a vector. One or two vectors of columns go down the rows of x: a row meets all
// taps, which stay in registers as the sums of the FILTER_ROWS rows of the result that it is seen
// by. Columns outside of x are masked: they are read all the same, so that neighbours have to lie
// before and behind the plane. Needs what planes.cl needs, and mask_macros
// with INSIDE_LEFT and INSIDE_RIGHT.
#include "ops/conv2d/epilogue_lanes.cl"

#if HAS_RESIDUAL
#define RESIDUAL_ARGUMENT , residual
#else
#define RESIDUAL_ARGUMENT
#endif

// Rows [p0, p_end) of `vectors` vectors from column q on, for `filters` filters of those from which
// y is. size and pad: of the kernel; steps: of y, between planes and rows.
__attribute__((always_inline)) static inline void direct_columns(
    global const T* x, global T* y RESIDUAL_PARAMETER, const int p0, const int p_end, const int q,
    const int H, const int W, const int4 pad, const long2 steps, const ACCV* taps, const ACCV* bias,
    const int filters, const int vectors) {
  BITSV masks[2][FILTER_COLUMNS];
#pragma unroll
  for (int v = 0; v < vectors; ++v)
    for (int s = 0; s < FILTER_COLUMNS; ++s) {
      const int before = pad.s1 - q - v * VEC - s * DILATION_W;  // columns before the first of x
      masks[v][s] = lanes_between(before, before + W);
    }
  ACCV sum[FILTERS][FILTER_ROWS][2];
#pragma unroll
  for (int i = 0; i < FILTERS * FILTER_ROWS * vectors; ++i)
    sum[i / vectors / FILTER_ROWS][i / vectors % FILTER_ROWS][i % vectors] =
        bias[i / vectors / FILTER_ROWS];
  const int end = p_end - pad.s0 + FILTER_ROWS - 1;
  for (int first = p0 - pad.s0; first < end; first += FILTER_ROWS)
#pragma unroll
    for (int turn = 0; turn < FILTER_ROWS; ++turn) {
      const int h = first + turn;
      if (h >= end) break;
      if (h >= 0 && h < H) {
        global const T* row = x + (long)h * W + q - pad.s1;
        // What the next plane has there.
        FETCH(row + (long)H * W);
        if (vectors > 1) FETCH(row + (long)H * W + VEC);
#pragma unroll
        for (int s = 0; s < FILTER_COLUMNS; ++s)
#pragma unroll
          for (int v = 0; v < vectors; ++v) {
            ACCV pixels = LOAD_PIXELS(row + v * VEC + s * DILATION_W);
            if ((v == 0 && LEAVES_LEFT(s)) || (v == vectors - 1 && LEAVES_RIGHT(s)))
              pixels = MASKED(pixels, masks[v][s]);
#pragma unroll
            for (int r = 0; r < FILTER_ROWS; ++r)
#pragma unroll
              for (int k = 0; k < FILTERS; ++k) {
                ACCV* one = &sum[k][(turn + FILTER_ROWS - r) % FILTER_ROWS][v];
                *one = MULTIPLY_ADD(taps[(k * FILTER_ROWS + r) * FILTER_COLUMNS + s], pixels, *one);
              }
          }
      }
      // No row behind this one is seen by the oldest sums.
      const int p = h + pad.s0 - (FILTER_ROWS - 1);
#pragma unroll
      for (int k = 0; k < FILTERS; ++k)
#pragma unroll
        for (int v = 0; v < vectors; ++v) {
          ACCV* one = &sum[k][(turn + 1) % FILTER_ROWS][v];
          if (p >= p0 && k < filters) FINISH_LANES(k * steps.s0 + p * steps.s1 + q + v * VEC, *one);
          *one = bias[k];
        }
    }
}
