// u = G w G^T of Winograd's F(4x4, 3x3): (36, K, C), a work-item a filter, VEC channels at a time.
// Needs T and ACC, vector_macros.
#include "ops/lanes.cl"

#define SIXTH ((ACC)(1.0 / 6))
#define TWELFTH ((ACC)(1.0 / 12))
#define TWENTY_FOURTH ((ACC)(1.0 / 24))

// One side of G w G^T: three values to six.
void transform_filter(const ACCV w0, const ACCV w1, const ACCV w2, ACCV* to, const int step) {
  const ACCV even = (w0 + w2) * SIXTH, wide = w0 * TWENTY_FOURTH + w2 * SIXTH;
  to[0] = w0 * (ACC)0.25;
  to[step] = -(even + w1 * SIXTH);
  to[2 * step] = -(even - w1 * SIXTH);
  to[3 * step] = wide + w1 * TWELFTH;
  to[4 * step] = wide - w1 * TWELFTH;
  to[5 * step] = w2;
}

// device(winograd_filters_4x4): CPU
kernel void winograd_filters_4x4(global const T* w, global ACC* u, const long8 at,
                                 const long filters, const long channels) {
  w += at.s0, u += at.s1;
  const long k = get_global_id(0);
  if (k >= filters) return;
  const long step = filters * channels;
  w += k * channels * 9;
  u += k * channels;
  for (long start = 0; start < channels; start += VEC) {
    // The last vector overlaps the one before.
    const long c = max(min(start, channels - VEC), 0L), count = min((long)VEC, channels);
    ACC taps[9][VEC];
    for (long lane = 0; lane < count; ++lane)
#pragma unroll
      for (int tap = 0; tap < 9; ++tap) taps[tap][lane] = LOAD_T(w, (c + lane) * 9 + tap);
    for (long lane = count; lane < VEC; ++lane)
      for (int tap = 0; tap < 9; ++tap) taps[tap][lane] = (ACC)0;
    ACCV half_way[6][3];
#pragma unroll
    for (int s = 0; s < 3; ++s)
      transform_filter(VLOAD(0, taps[s]), VLOAD(0, taps[3 + s]), VLOAD(0, taps[6 + s]),
                       &half_way[0][s], 3);
#pragma unroll
    for (int r = 0; r < 6; ++r) {
      ACCV row[6];
      transform_filter(half_way[r][0], half_way[r][1], half_way[r][2], row, 1);
#pragma unroll
      for (int s = 0; s < 6; ++s) {
        global ACC* to = u + (r * 6 + s) * step + c;
        if (count == VEC) {
          STORE_GLOBAL(row[s], to);
        } else {
          ACC lanes[VEC];
          STORE_LANES(row[s], lanes);
          for (long lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
        }
      }
    }
  }
}
