// The gradient with respect to x of strided convolutions of few channels, for CPUs. A column of dx
// is one of STEP phases, f = column % STEP, and sees every STEP-th tap of a row of the filter; so
// do rows. A work-group is one work-item: it copies the rows of dy that its block of dx sees into
// local memory, padded, row by row all filters of a group. A tile are NC channels x STEP phases x
// NV vectors of a phase, also of several rows, in registers: whatever some taps see of dy is one
// vector that all phases and channels use, and the phases leave interleaved.
// Dimensions: blocks of rows by strips of columns; groups; images.
//
// Needs T and ACC, vector_macros; NC, STEP, NV; TAPS, the columns of the filter, of which phase f
// meets f + FIRST - d * STEP in the vector d of SHIFTS; ELEMENTS of local memory; FETCHES, lines of
// dy that are asked for ahead per row of the filter.
#include "ops/conv2d/geometry.cl"
#include "ops/lanes.cl"

#define LINE (64 / (int)sizeof(T))

// A vector of each phase, interleaved, into the `width` elements of a row that are left at y.
__attribute__((always_inline)) static inline void store_phases(const ACCV* phases, global T* y,
                                                               const int width) {
#if STEP <= 2
  if (width >= STEP * VEC) {
#if STEP == 1
    STORE_RESULTS(phases[0], y);
#else
    ACCV low, high;
    low.even = phases[0].lo, low.odd = phases[1].lo;
    high.even = phases[0].hi, high.odd = phases[1].hi;
    STORE_RESULTS(low, y);
    STORE_RESULTS(high, y + VEC);
#endif
    return;
  }
#endif
  ACC lanes[STEP * VEC];
#pragma unroll
  for (int f = 0; f < STEP; ++f) STORE_LANES(phases[f], lanes + f * VEC);
  for (int i = 0; i < min(width, STEP * VEC); ++i) STORE_T(y, i, lanes[i % STEP * VEC + i / STEP]);
}

// w: (groups, blocks of NC channels, R, K / groups, TAPS, NC). cut: rows and vectors of a block, in
// steps of a phase; strips; the first row and column of dy that the first ones of dx see; the rows
// that one sees; and of rows, what FIRST is of columns.
// device(conv2d_phases): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void conv2d_phases(
    global const T* dy, global const ACC* w, global const T* b, global T* dx, const long8 at,
    const int16 g, const int8 cut, const int has_bias) {
  local ACC rows[ELEMENTS];
  dy += at.s0, w += at.s1, b += at.s2, dx += at.s3;
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS, first_row = cut.s6;
  const int parts = get_num_groups(0) / cut.s2;
  const int i0 = get_group_id(0) % parts * cut.s0, v0 = get_group_id(0) / parts * cut.s1;
  const long group = get_group_id(1), n = get_group_id(2);
  const int across = (W + STEP * VEC - 1) / (STEP * VEC), wide = min(cut.s1, across - v0);
  const int pitch = wide * VEC + SHIFTS - 1, line = Kg * pitch;
  const int down = min(cut.s0, (H + STRIDE_H - 1) / STRIDE_H - i0), height = down + cut.s5 - 1;
  dy += (n * K + group * Kg) * P * Q;
  for (int k = 0; k < Kg; ++k)
    for (int i = 0; i < height; ++i) {
      const int p = i0 + cut.s3 + i;
      copy_padded(dy + ((long)k * P + p) * Q, Q, -(v0 * VEC + cut.s4), p >= 0 && p < P, pitch,
                  rows + i * line + k * pitch);
    }
  // What the next block, which this core is likely to need next, sees of each filter.
  const long p_next = i0 + cut.s3 + height, filter = (long)P * Q;
  global const T* next = dy + (p_next < P ? p_next * Q : Kg * filter);
  w += group * ((Cg + NC - 1) / NC) * R * Kg * TAPS * NC;
  for (int c0 = 0; c0 < Cg; c0 += NC, w += (long)R * Kg * TAPS * NC)
    for (int f = 0; f < STRIDE_H; ++f) {
      // The rows of dy with a tap for this phase.
      const int begin = f + first_row >= R ? 1 : 0, end = (f + first_row + STRIDE_H) / STRIDE_H;
      const int vectors = min(down, (H - f + STRIDE_H - 1) / STRIDE_H - i0) * wide;
      for (int v = 0; v < vectors; v += NV) {
        local const ACC* from[NV];
        ACCV sum[NV][NC][STEP];
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          const int at_v = min(v + j, vectors - 1);  // behind the last one it comes again
          from[j] = rows + at_v / wide * line + at_v % wide * VEC;
        }
#pragma unroll
        for (int c = 0; c < NC; ++c) {
          const ACC bias = has_bias ? LOAD_T(b, group * Cg + min(c0 + c, Cg - 1)) : (ACC)0;
#pragma unroll
          for (int j = 0; j < NV * STEP; ++j) sum[j / STEP][c][j % STEP] = (ACCV)(bias);
        }
        for (int e = begin; e < end; ++e) {
          global const ACC* taps = w + (f + first_row - e * STRIDE_H) * (long)(Kg * TAPS * NC);
          long offset = e * line;
          global const T* ahead = next;
          next += FETCHES * LINE;
          for (int k = 0; k < Kg; ++k) {
#pragma unroll
            for (int i = 0; i < FETCHES; ++i) FETCH_NEAR(ahead + i * LINE);
            ahead += filter;
#pragma unroll
            for (int d = 0; d < SHIFTS; ++d) {
              ACCV pixels[NV];
#pragma unroll
              for (int j = 0; j < NV; ++j) pixels[j] = LOAD_LOCAL(from[j] + offset + d);
#pragma unroll
              for (int i = 0; i < STEP; ++i) {
                const int s = i + FIRST - d * STEP;
                if (s < 0 || s >= TAPS) continue;
#pragma unroll
                for (int c = 0; c < NC; ++c) {
                  const ACCV weight = (ACCV)(taps[s * NC + c]);
#pragma unroll
                  for (int j = 0; j < NV; ++j)
                    sum[j][c][i] = MULTIPLY_ADD(weight, pixels[j], sum[j][c][i]);
                }
              }
            }
            taps += TAPS * NC;
            offset += pitch;
          }
        }
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          if (v + j >= vectors) break;
          const long h = (i0 + (v + j) / wide) * STRIDE_H + f;
          const int column = (v0 + (v + j) % wide) * STEP * VEC;
#pragma unroll
          for (int c = 0; c < NC; ++c)
            if (c0 + c < Cg)
              store_phases(sum[j][c], dx + ((n * C + group * Cg + c0 + c) * H + h) * W + column,
                           W - column);
        }
      }
    }
}
