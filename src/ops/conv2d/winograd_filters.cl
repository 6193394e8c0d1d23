// u = G w G^T of Winograd's F(4x4, 3x3) or F(2x2, 3x3) for CPUs: PATCH 6 or 4, PATCH * PATCH
// places. A work-item owns BLOCK filters, VEC channels at a time.
//   BLOCK 1    u (places, K, C)
//   BLOCK VEC  u (places, blocks of VEC filters, C, VEC), as winograd_strips.cl reads them; filters
//              that are not there are zero
// Needs T and ACC, vector_macros, PATCH, BLOCK.
#include "ops/lanes.cl"

#define PLACES (PATCH * PATCH)
#define SIXTH ((ACC)(1.0 / 6))
#define TWELFTH ((ACC)(1.0 / 12))
#define TWENTY_FOURTH ((ACC)(1.0 / 24))

// One side of G w G^T: three values to PATCH.
void transform_filter(const ACCV w0, const ACCV w1, const ACCV w2, ACCV* to, const int step) {
#if PATCH == 6
  const ACCV even = (w0 + w2) * SIXTH, wide = w0 * TWENTY_FOURTH + w2 * SIXTH;
  to[0] = w0 * (ACC)0.25;
  to[step] = -(even + w1 * SIXTH);
  to[2 * step] = -(even - w1 * SIXTH);
  to[3 * step] = wide + w1 * TWELFTH;
  to[4 * step] = wide - w1 * TWELFTH;
#else
  to[0] = w0;
  to[step] = (w0 + w1 + w2) * (ACC)0.5;
  to[2 * step] = (w0 - w1 + w2) * (ACC)0.5;
#endif
  to[(PATCH - 1) * step] = w2;
}

// VEC channels from w on, of which `count` exist.
void transform_channels(global const T* w, long count, ACCV to[PLACES]) {
  ACC taps[9][VEC];
  for (long lane = 0; lane < count; ++lane)
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) taps[tap][lane] = LOAD_T(w, lane * 9 + tap);
  for (long lane = count; lane < VEC; ++lane)
    for (int tap = 0; tap < 9; ++tap) taps[tap][lane] = (ACC)0;
  ACCV half_way[PATCH][3];
#pragma unroll
  for (int s = 0; s < 3; ++s)
    transform_filter(VLOAD(0, taps[s]), VLOAD(0, taps[3 + s]), VLOAD(0, taps[6 + s]),
                     &half_way[0][s], 3);
#pragma unroll
  for (int r = 0; r < PATCH; ++r)
    transform_filter(half_way[r][0], half_way[r][1], half_way[r][2], to + r * PATCH, 1);
}

// device(winograd_vector_filters): CPU
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void winograd_vector_filters(
    global const T* w, global ACC* u, const long8 at, const long filters, const long channels) {
#if BLOCK > 1
  local ACC block[PLACES][BLOCK * VEC];
#endif
  const long first = get_global_id(0) * BLOCK, there = min((long)BLOCK, filters - first);
  const long step = (filters + BLOCK - 1) / BLOCK * BLOCK * channels;
  const long count = min((long)VEC, channels);
  w += at.s0 + first * channels * 9, u += at.s1 + first * channels;
  for (long start = 0; start < channels; start += VEC) {
    // The last vector overlaps the one before.
    const long c = max(min(start, channels - VEC), 0L);
    ACCV values[PLACES];
#if BLOCK > 1
    for (long k = 0; k < BLOCK; ++k) {
      if (k < there) transform_channels(w + (k * channels + c) * 9, count, values);
      for (int place = 0; place < PLACES; ++place)
        STORE_LOCAL(k < there ? values[place] : (ACCV)0, block[place] + k * VEC);
    }
    for (int place = 0; place < PLACES; ++place) {
      ACCV rows[VEC];
#pragma unroll
      for (int k = 0; k < VEC; ++k) rows[k] = LOAD_LOCAL(block[place] + k * VEC);
      transpose_lanes(rows);
#pragma unroll
      for (int lane = 0; lane < VEC; ++lane)
        if (lane < count) STORE_GLOBAL(rows[lane], u + place * step + (c + lane) * BLOCK);
    }
#else
    transform_channels(w + c * 9, count, values);
    for (int place = 0; place < PLACES; ++place) {
      global ACC* to = u + place * step + c;
      if (count == VEC) {
        STORE_GLOBAL(values[place], to);
      } else {
        ACC lanes[VEC];
        STORE_LANES(values[place], lanes);
        for (long lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
      }
    }
#endif
  }
}
