// Tiles of Winograd's F(4x4, 3x3) in vectors of VEC neighbours: what the kernels that hold them in
// local memory (winograd_panels.cl) and in global memory (winograd_batched.cl) share.
// Needs vector_macros and lanes.cl; TILE_SPACE, the address space of transformed inputs and sums;
// SEEN, the most tiles that are transformed at a time.

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

#define ROW (4 * SEEN + 4 + 4 * VEC)  // what SEEN tiles see of a row, and slack

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
                      ACC rows[6][ROW], TILE_SPACE ACC* panels, long step) {
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
      for (int s = 0; s < 6; ++s)
        *(TILE_SPACE loose_lanes*)(panels + (r * 6 + s) * step + t) = v[s];
    }
}

// The 4x4 results of VEC tiles of one filter, tile after tile.
void transform_sums(TILE_SPACE const ACC* sums, long step, ACC results[16][VEC]) {
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

// Where the results of a tile go: the place of its first one in y for the first filter, and how
// many of its rows and columns exist. tiles: (all, down, across).
typedef struct {
  long place;
  int rows, columns;
} TilePlace;

TilePlace place_of_tile(long tile, long4 tiles, int K, int P, int Q) {
  const long n = tile / (tiles.s1 * tiles.s2);
  const int p = tile / tiles.s2 % tiles.s1 * 4, q = tile % tiles.s2 * 4;
  const TilePlace place = {(n * K * P + p) * Q + q, min(4, P - p), min(4, Q - q)};
  return place;
}

// The inputs of the tiles [first, first + count) of one channel, row of tiles after row, to `to`;
// the places are `step` apart. Between two rows up to VEC - 1 elements are written twice.
// x: a padded copy of `image` rows and columns whose tiles are whole.
void transform_channel(global const ACC* x, long limit, int C, long c, long first, long count,
                       long4 tiles, long2 image, ACC rows[6][ROW], TILE_SPACE ACC* to, long step) {
  for (long done = 0; done < count;) {
    const long tile = first + done, across = tile % tiles.s2, down = tile / tiles.s2 % tiles.s1;
    const long n = tile / (tiles.s1 * tiles.s2);
    const long some = min(min(count - done, tiles.s2 - across), (long)SEEN);
    transform_inputs(x, ((n * C + c) * image.s0 + down * 4) * image.s1 + across * 4, limit,
                     image.s1, some, rows, to + done, step);
    done += some;
  }
}

// The results of one filter for VEC tiles, of which `lanes` exist, into y.
#define STORE_TILES(sums, step, tile_places, lanes, to_filter, bias)       \
  {                                                                        \
    ACC results[16][VEC];                                                  \
    transform_sums(sums, step, results);                                   \
    for (long lane = 0; lane < (lanes); ++lane) {                          \
      const TilePlace tile = (tile_places)[lane];                          \
      const long to = tile.place + (to_filter);                            \
      if (tile.rows == 4 && tile.columns == 4) {                           \
        _Pragma("unroll") for (int r = 0; r < 4; ++r)                      \
            _Pragma("unroll") for (int s = 0; s < 4; ++s)                  \
                FINISH(to + r * Q + s, results[r * 4 + s][lane] + (bias)); \
      } else {                                                             \
        for (int r = 0; r < tile.rows; ++r)                                \
          for (int s = 0; s < tile.columns; ++s)                           \
            FINISH(to + r * Q + s, results[r * 4 + s][lane] + (bias));     \
      }                                                                    \
    }                                                                      \
  }
