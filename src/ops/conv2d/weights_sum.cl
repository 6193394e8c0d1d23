// The second half of weights_tiles.cl: dw from the sums of the parts, added in their order, so that
// every run gives the same bits. Dimensions: VEC taps; VEC filters; groups.
// Needs T and ACC, vector_macros, PANEL. tile: channels, rows and columns of a tile of sums, and
// the tiles that a filter has one below the other.
#include "ops/lanes.cl"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void weights_sum(
    global const ACC* sums, global T* dw, const long8 at, const int parts, const int groups,
    const int filters, const int channel_taps, const int4 tile, const int taps,
    const long all_taps) {
  const int tap = get_group_id(0) * VEC, k = get_group_id(1) * VEC, group = get_group_id(2);
  const int panels = (filters + PANEL - 1) / PANEL;
  const long part = (long)groups * panels * all_taps * PANEL;
  sums += at.s0 + ((long)group * panels + k / PANEL) * all_taps * PANEL + k % PANEL;
  dw += at.s1 + ((long)group * filters + k) * taps + tap;
  ACCV v[VEC];
  for (int i = 0; i < VEC; ++i) {
    const int t = tap + i, c = t / channel_taps;
    const int r = (t - c * channel_taps) / tile.s2, s = t - c * channel_taps - r * tile.s2;
    const long number = (long)(c / tile.s0) * tile.s3 + r / tile.s1;
    const int within = (c % tile.s0 * tile.s1 + r % tile.s1) * tile.s2 + s;
    const long from = (number * tile.s0 * tile.s1 * tile.s2 + within) * PANEL;
    v[i] = (ACCV)0;
    if (t < taps)
      for (int p = 0; p < parts; ++p) v[i] += VLOAD(0, sums + p * part + from);
  }
  transpose_lanes(v);
  const int count = min(VEC, taps - tap);
  for (int i = 0; i < min(VEC, filters - k); ++i) {
    ACC lanes[VEC];
    STORE_LANES(v[i], lanes);
    for (int l = 0; l < count; ++l) STORE_T(dw, (long)i * taps + l, lanes[l]);
  }
}
