// Winograd's F(4x4, 3x3) for CPUs: tiles of 4x4 results from 6x6 inputs with 36 products in the
// place of 144, all in one kernel. A work-group is one work-item: it transforms the inputs of
// NR = NV * VEC tiles into 36 panels in local memory, which there is ordinary memory of the core's
// own cache, and for MR filters at a time multiplies all 36 and transforms the sums back.
//   winograd_panel_filters  u = G w G^T: (36, K, C), an item per filter
//   winograd_panels         dimensions: parts of the filters; panels of tiles
// x is a padded copy whose rows and columns hold whole tiles. Needs T and ACC, MR, NV, VEC and its
// macros, TERMS (the most channels), ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

#define LOAD_LEFT(p, i) ((p)[i])
typedef ACC Left;
#define TILE_SPACE local
#include "ops/matmul/panel_tile.cl"

#define SIXTH ((ACC)(1.0 / 6))
#define TWELFTH ((ACC)(1.0 / 12))
#define TWENTY_FOURTH ((ACC)(1.0 / 24))

// device(winograd_panel_filters): CPU
kernel void winograd_panel_filters(global const T* w, global ACC* u, const long8 at,
                                   const long filters, const long channels) {
  w += at.s0, u += at.s1;
  const long k = get_global_id(0);
  if (k >= filters) return;
  const long step = filters * channels;
  for (long c = 0; c < channels; ++c) {
    ACC half_way[6][3];
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      const long from = (k * channels + c) * 9 + s;
      const ACC w0 = LOAD_T(w, from), w1 = LOAD_T(w, from + 3), w2 = LOAD_T(w, from + 6);
      const ACC even = (w0 + w2) * SIXTH, wide = w0 * TWENTY_FOURTH + w2 * SIXTH;
      half_way[0][s] = w0 * (ACC)0.25;
      half_way[1][s] = -(even + w1 * SIXTH);
      half_way[2][s] = -(even - w1 * SIXTH);
      half_way[3][s] = wide + w1 * TWELFTH;
      half_way[4][s] = wide - w1 * TWELFTH;
      half_way[5][s] = w2;
    }
#pragma unroll
    for (int r = 0; r < 6; ++r) {
      const ACC w0 = half_way[r][0], w1 = half_way[r][1], w2 = half_way[r][2];
      const ACC even = (w0 + w2) * SIXTH, wide = w0 * TWENTY_FOURTH + w2 * SIXTH;
      global ACC* to = u + r * 6 * step + k * channels + c;
      to[0] = w0 * (ACC)0.25;
      to[step] = -(even + w1 * SIXTH);
      to[2 * step] = -(even - w1 * SIXTH);
      to[3 * step] = wide + w1 * TWELFTH;
      to[4 * step] = wide - w1 * TWELFTH;
      to[5 * step] = w2;
    }
  }
}

// One side of B^T d B: six values to six.
#define TRANSFORM_INPUT(d0, d1, d2, d3, d4, d5, e0, e1, e2, e3, e4, e5)    \
  {                                                                        \
    const ACCV inner = (d4) - (ACC)4 * (d2), cross = (d3) - (ACC)4 * (d1); \
    const ACCV outer = (d4) - (d2), slope = (ACC)2 * ((d3) - (d1));        \
    e0 = (ACC)4 * (d0) - (ACC)5 * (d2) + (d4);                             \
    e1 = inner + cross;                                                    \
    e2 = inner - cross;                                                    \
    e3 = outer + slope;                                                    \
    e4 = outer - slope;                                                    \
    e5 = (ACC)4 * (d1) - (ACC)5 * (d3) + (d5);                             \
  }

// One side of A^T m A: six values to four.
#define TRANSFORM_SUMS(m0, m1, m2, m3, m4, m5, y0, y1, y2, y3) \
  {                                                            \
    const ACCV near_sum = (m1) + (m2), near_gap = (m1) - (m2); \
    const ACCV far_sum = (m3) + (m4), far_gap = (m3) - (m4);   \
    y0 = (m0) + near_sum + far_sum;                            \
    y1 = near_gap + (ACC)2 * far_gap;                          \
    y2 = near_sum + (ACC)4 * far_sum;                          \
    y3 = near_gap + (ACC)8 * far_gap + (m5);                   \
  }

#define ROW (4 * NR + 4 + 4 * VEC)  // what the tiles of a panel see of a row, and slack

// A vector of every fourth element of the 4 * VEC from p on, beginning with the first four each.
#define SPLIT_BY_FOUR(p, d0, d1, d2, d3)                                              \
  {                                                                                   \
    const ACCV a = VLOAD(0, p), b = VLOAD(1, p), c = VLOAD(2, p), d = VLOAD(3, p);    \
    const ACCV even_low = (ACCV)(a.even, b.even), even_high = (ACCV)(c.even, d.even); \
    const ACCV odd_low = (ACCV)(a.odd, b.odd), odd_high = (ACCV)(c.odd, d.odd);       \
    d0 = (ACCV)(even_low.even, even_high.even);                                       \
    d1 = (ACCV)(odd_low.even, odd_high.even);                                         \
    d2 = (ACCV)(even_low.odd, even_high.odd);                                         \
    d3 = (ACCV)(odd_low.odd, odd_high.odd);                                           \
  }

// `tiles` neighbours of one row of tiles of one channel, which begin at x[from], into the 36
// panels, `step` apart. Nothing at or behind `limit` is read. Writes whole vectors: up to VEC - 1
// elements behind the tiles are overwritten.
// `rows` is memory for it in which there are numbers: what lies behind the tiles is computed with,
// and what was never written may be denormal, which is slow.
void transform_inputs(global const ACC* x, long from, long limit, long width, long tiles,
                      ACC rows[6][ROW], local ACC* panels, long step) {
  // First down, where neighbours are neighbours; the last vectors may read beyond the tiles.
  for (long i = 0; i < 4 * tiles + 2; i += VEC) {
    ACCV d[6], e[6];
    if (from + 5 * width + i + VEC <= limit) {
#pragma unroll
      for (int r = 0; r < 6; ++r) d[r] = VLOAD(0, x + from + r * width + i);
    } else {
      for (int r = 0; r < 6; ++r) {
        ACC lanes[VEC];
        for (int lane = 0; lane < VEC; ++lane) {
          const long place = from + r * width + i + lane;
          lanes[lane] = place < limit ? x[place] : (ACC)0;
        }
        d[r] = VLOAD(0, lanes);
      }
    }
    TRANSFORM_INPUT(d[0], d[1], d[2], d[3], d[4], d[5], e[0], e[1], e[2], e[3], e[4], e[5])
#pragma unroll
    for (int r = 0; r < 6; ++r) STORE_LANES(e[r], rows[r] + i);
  }
  // Then across, for VEC tiles at a time; what lies behind the row is never kept.
  for (long t = 0; t < tiles; t += VEC)
    for (int r = 0; r < 6; ++r) {
      ACCV d0, d1, d2, d3, d4, d5, unused2, unused3, v[6];
      SPLIT_BY_FOUR(rows[r] + 4 * t, d0, d1, d2, d3)
      SPLIT_BY_FOUR(rows[r] + 4 * t + 4, d4, d5, unused2, unused3)
      TRANSFORM_INPUT(d0, d1, d2, d3, d4, d5, v[0], v[1], v[2], v[3], v[4], v[5])
#pragma unroll
      for (int s = 0; s < 6; ++s) STORE_LANES(v[s], panels + (r * 6 + s) * step + t);
    }
}

// The 4x4 results of VEC tiles of one filter, tile after tile.
void transform_sums(local const ACC* sums, long step, ACC results[16][VEC]) {
  ACCV e[4][6];
#pragma unroll
  for (int s = 0; s < 6; ++s)
    TRANSFORM_SUMS(VLOAD(0, sums + s * step), VLOAD(0, sums + (6 + s) * step),
                   VLOAD(0, sums + (12 + s) * step), VLOAD(0, sums + (18 + s) * step),
                   VLOAD(0, sums + (24 + s) * step), VLOAD(0, sums + (30 + s) * step), e[0][s],
                   e[1][s], e[2][s], e[3][s])
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    ACCV v[4];
    TRANSFORM_SUMS(e[r][0], e[r][1], e[r][2], e[r][3], e[r][4], e[r][5], v[0], v[1], v[2], v[3])
#pragma unroll
    for (int s = 0; s < 4; ++s) STORE_LANES(v[s], results[r * 4 + s]);
  }
}

// device(winograd_panels): CPU
// tiles: (tiles of all images, down, across, filters of a work-item); image: the padded copy's
// height and width.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void winograd_panels(
    global const ACC* x, global const ACC* u, global const T* b, global T* y RESIDUAL_PARAMETER,
    const long8 at, const int16 g, const long4 tiles, const long2 image, const int has_bias) {
  // A panel has slack behind its last channel, for transform_inputs.
  local ACC panels[36 * (TERMS * NR + VEC)];
  local ACC sums[36 * MR * NR];
  x += at.s0, u += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  GEOMETRY(g);
  const long first = get_global_id(1) * NR, count = min((long)NR, tiles.s0 - first);
  const long begin = get_global_id(0) * tiles.s3, end = min((long)K, begin + tiles.s3);
  const long plane = image.s0 * image.s1, limit = N * C * plane, step = C * NR + VEC;
  long place[NR];  // of the tiles' results in y, for the first filter
  int rows_of[NR], columns_of[NR];
  for (long i = 0; i < count; ++i) {
    const long tile = first + i, n = tile / (tiles.s1 * tiles.s2);
    const int p = tile / tiles.s2 % tiles.s1 * 4, q = tile % tiles.s2 * 4;
    place[i] = (n * K * P + p) * Q + q;
    rows_of[i] = min(4, P - p);
    columns_of[i] = min(4, Q - q);
  }
  ACC rows_seen[6][ROW];
  for (int r = 0; r < 6; ++r)
    for (int i = 0; i < ROW; ++i) rows_seen[r][i] = (ACC)0;
  for (long c = 0; c < C; ++c) {
    local ACC* to = panels + c * NR;
    for (long done = 0; done < count;) {
      const long tile = first + done, across = tile % tiles.s2, down = tile / tiles.s2 % tiles.s1;
      const long n = tile / (tiles.s1 * tiles.s2), some = min(count - done, tiles.s2 - across);
      transform_inputs(x, (n * C + c) * plane + (down * image.s1 + across) * 4, limit, image.s1,
                       some, rows_seen, to + done, step);
      done += some;
    }
    // Tiles that are not there.
    for (long place = 0; place < 36; ++place)
      for (long i = count; i < NR; ++i) to[place * step + i] = (ACC)0;
  }

  for (long row = begin; row < end; row += MR) {
    const long rows = min((long)MR, end - row);
    for (long e = 0; e < 36; ++e)
      multiply_rows(u + (e * K + row) * C, C, 1, rows, panels + e * step, C, sums + e * MR * NR);
    for (long i = 0; i < rows; ++i) {
      const long k = row + i;
      const ACC bias = has_bias ? LOAD_T(b, k) : (ACC)0;
      for (int j = 0; j < NV; ++j) {
        ACC results[16][VEC];
        transform_sums(sums + i * NR + j * VEC, MR * NR, results);
        const long lanes = min((long)VEC, count - j * VEC);
        for (long lane = 0; lane < lanes; ++lane) {
          const long to = place[j * VEC + lane] + k * P * Q;
          const int down = rows_of[j * VEC + lane], across = columns_of[j * VEC + lane];
          if (down == 4 && across == 4) {
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
              for (int s = 0; s < 4; ++s) FINISH(to + r * Q + s, results[r * 4 + s][lane] + bias);
          } else {
            for (int r = 0; r < down; ++r)
              for (int s = 0; s < across; ++s)
                FINISH(to + r * Q + s, results[r * 4 + s][lane] + bias);
          }
        }
      }
    }
  }
}
