// Convolutions of few taps for CPUs: the product of packed.cl without panels. A work-group is one
// work-item: it copies the rows of x that cut.s0 rows of the result see into local memory, padded
// and split by the phases of STEP_W, so that whatever a tap sees of VEC neighbours of the result is
// one vector. A table says where a tap begins, and tiles of MR filters by NV vectors, also of
// several rows, are sums over it in registers. Dimensions: blocks of rows; groups; images.
// Needs T and ACC, MR, NV, VEC and its macros, ACTIVATION, STEP_W; ELEMENTS of local memory for
// rows and MOST_TAPS; STREAMS: results go past the caches where they lie at multiples of a vector.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#include "ops/matmul/panel_tile.cl"

// The rows of x that the results [p0, p0 + count) see, `phase` elements of each phase.
static inline void copy_rows(local ACC* rows, global const T* x, int p0, int count, int phase,
                             int channel, int16 g) {
  GEOMETRY(g);
  const int height = (count - 1) * STRIDE_H + (R - 1) * DIL_H + 1;
  for (int c = 0; c < C / GROUPS; ++c)
    for (int i = 0; i < height; ++i) {
      const int h = p0 * STRIDE_H - PAD_H + i;
      copy_phases(x + ((long)c * H + h) * W, W, PAD_W, h >= 0 && h < H, phase,
                  rows + c * channel + i * STEP_W * phase);
    }
}

// cut: rows of a block; elements of a phase, and of a channel in local memory. Q is at least VEC.
// device(conv2d_taps): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void conv2d_taps(
    global const T* x, global const ACC* w, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int16 g, const int4 cut, const int has_bias) {
  local ACC rows[ELEMENTS];
  local int begins[MOST_TAPS];
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS, taps = Cg * R * S, pitch = STEP_W * cut.s1;
  const int p0 = get_group_id(0) * cut.s0, height = min(cut.s0, P - p0);
  const long group = get_group_id(1), n = get_group_id(2), pixels = (long)P * Q;
  copy_rows(rows, x + (n * C + group * Cg) * H * W, p0, height, cut.s1, cut.s2, g);
  for (int k = 0; k < taps; ++k) {
    const int across = k % S * DIL_W;
    begins[k] = k / (R * S) * cut.s2 + k / S % R * DIL_H * pitch + across % STEP_W * cut.s1 +
                across / STEP_W;
  }
  w += group * Kg * taps;
  const int across = (Q + VEC - 1) / VEC, vectors = height * across;
  for (int v = 0; v < vectors; v += NV) {
    local const ACC* from_x[NV];
    long to[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j) {
      // Behind the last vector it comes again, and the last of a row overlaps the one before: the
      // same results twice.
      const int at_v = min(v + j, vectors - 1), p = at_v / across;
      const int q = min(at_v % across * VEC, Q - VEC);
      from_x[j] = rows + p * STRIDE_H * pitch + q;
      to[j] = (n * K + group * Kg) * pixels + (long)(p0 + p) * Q + q;
    }
    for (int row = 0; row < Kg; row += MR) {
      const int count = min(MR, Kg - row);
#if !STREAMS
      FOR_TILE(i, j) FETCH_TO_WRITE(y + to[j] + (row + i) * pixels);
#endif
      Tile sum;
      clear_tile(&sum);
      LEFT_ROWS(from, w + (long)row * taps, (long)taps, count);
      for (int k = 0; k < taps; ++k) {
        const int begin = begins[k];
        ACCV values[NV];
#pragma unroll
        for (int j = 0; j < NV; ++j) values[j] = LOAD_LOCAL(from_x[j] + begin);
        ADD_TERM(&sum, from, k, values, NV)
      }
#pragma unroll
      for (int i = 0; i < MR; ++i) {
        if (i >= count) break;
        const ACC bias = has_bias ? LOAD_T(b, group * Kg + row + i) : (ACC)0;
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          const long place = to[j] + (row + i) * pixels;
#if STREAMS
          if ((size_t)y % sizeof(ACCV) == 0) {
            STREAM_LANES(place, sum.of[i][j] + bias);
            continue;
          }
#endif
          FINISH_LANES(place, sum.of[i][j] + bias);
        }
      }
    }
  }
}
