// Tiles of Winograd's F(4x4, 3x3) in vectors of VEC neighbours: what the kernels that hold them in
// local memory (winograd_panels.cl) and in global memory (winograd_batched.cl) share, and with
// F(3x3, 4x4) the gradient with respect to w (weights_winograd.cl), which sees the same inputs.
// Needs T and ACC, vector_macros and lanes.cl; TILE_SPACE, the address space of transformed inputs
// and sums; SEEN, the most tiles that are transformed at a time.

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

// One side of F(3x3, 4x4)'s G d G^T, where 4x4 gradients are the filter: four values to six.
#define TRANSFORM_GRADIENTS(d0, d1, d2, d3, e0, e1, e2, e3, e4, e5)                         \
  {                                                                                         \
    const ACCV even = (ACC)(1.0 / 6) * ((d0) + (d2)), odd = (ACC)(1.0 / 6) * ((d1) + (d3)); \
    const ACCV wide = (ACC)(1.0 / 24) * (d0) + (ACC)(1.0 / 6) * (d2);                       \
    const ACCV slope = (ACC)(1.0 / 12) * (d1) + (ACC)(1.0 / 3) * (d3);                      \
    e0 = (ACC)0.25 * (d0);                                                                  \
    e1 = -(even + odd);                                                                     \
    e2 = odd - even;                                                                        \
    e3 = wide + slope;                                                                      \
    e4 = wide - slope;                                                                      \
    e5 = (d3);                                                                              \
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

// What SEEN tiles see of six rows after the transform down, and slack: four columns for each tile.
// The fifth and sixth of a tile are the first two of the next one, but not where a row of tiles
// ends: `shared` is `own` with the end of each row in the place of the beginning of the next one.
#define ROW (4 * SEEN + 4 + VEC)
typedef struct {
  ACC own[6][ROW], shared[6][ROW];
} SeenRows;

// Once, before it is used: what lies behind the last tile is computed with, and what was never
// written may be denormal, which is slow.
void clear_rows(SeenRows* seen) {
  for (int r = 0; r < 6; ++r)
    for (int i = 0; i < ROW; ++i) seen->own[r][i] = seen->shared[r][i] = (ACC)0;
}

// A vector of every fourth element of the 4 * VEC from p on, beginning with the first four each.
#define SPLIT_BY_FOUR(p, d0, d1, d2, d3)                                           \
  {                                                                                \
    const ACCV a = VLOAD(0, p), b = VLOAD(1, p), c = VLOAD(2, p), d = VLOAD(3, p); \
    const ACCV even_low = even_lanes(a, b), even_high = even_lanes(c, d);          \
    const ACCV odd_low = odd_lanes(a, b), odd_high = odd_lanes(c, d);              \
    d0 = even_lanes(even_low, even_high);                                          \
    d1 = even_lanes(odd_low, odd_high);                                            \
    d2 = odd_lanes(even_low, even_high);                                           \
    d3 = odd_lanes(odd_low, odd_high);                                             \
  }

// The rows and columns that a tile sees: six of inputs, or its own four of gradients. A constant
// where these functions are called, so that one of the transforms is left.
#define INPUTS 6
#define GRADIENTS 4
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

// VEC columns of six (or four) rows, `width` apart, through the transform down. Only the rows [top,
// bottom) exist; nothing at or behind `limit` is read.
ALWAYS_INLINE void transform_down(global const T* x, long from, long limit, long width, int top,
                                  int bottom, ACCV e[6], const int patch) {
  ACCV d[6];
  if (from + (bottom - 1) * width + VEC <= limit) {
#pragma unroll
    for (int r = 0; r < patch; ++r)
      d[r] = top <= r && r < bottom ? LOADV(x, from + r * width) : (ACCV)0;
  } else {
    for (int r = 0; r < patch; ++r) {
      ACC lanes[VEC];
      for (int lane = 0; lane < VEC; ++lane) {
        const long place = from + r * width + lane;
        lanes[lane] = top <= r && r < bottom && place < limit ? LOAD_T(x, place) : (ACC)0;
      }
      d[r] = VLOAD(0, lanes);
    }
  }
  if (patch == INPUTS)
    TRANSFORM_INPUT(d[0], d[1], d[2], d[3], d[4], d[5], e[0], e[1], e[2], e[3], e[4], e[5])
  else
    TRANSFORM_GRADIENTS(d[0], d[1], d[2], d[3], e[0], e[1], e[2], e[3], e[4], e[5])
}

ALWAYS_INLINE void keep_columns(const ACCV e[6], SeenRows* seen, long at, const int patch) {
#pragma unroll
  for (int r = 0; r < 6; ++r) {
    *(loose_lanes*)(seen->own[r] + at) = e[r];
    if (patch == INPUTS) *(loose_lanes*)(seen->shared[r] + at) = e[r];
  }
}

// The columns that neighbours in one row of tiles see, the first of which would be x[from], to the
// place `at`, behind those of another row. Only the rows [top, bottom) and the columns [left,
// right) exist; the others are zero. The last vectors are written beyond the columns.
ALWAYS_INLINE void see_columns(global const T* x, long from, long limit, long width, int top,
                               int bottom, long left, long right, long columns, SeenRows* seen,
                               long at, const int patch) {
  ACC ends[6][2];
  for (int r = 0; r < 6; ++r) ends[r][0] = seen->own[r][at], ends[r][1] = seen->own[r][at + 1];
  ACCV e[6];
#pragma unroll
  for (int r = 0; r < 6; ++r) e[r] = (ACCV)0;
  for (long i = 0; i < left; i += VEC) keep_columns(e, seen, at + i, patch);
  for (long i = left; i < right; i += VEC) {
    transform_down(x, from + i, limit, width, top, bottom, e, patch);
    keep_columns(e, seen, at + i, patch);
  }
#pragma unroll
  for (int r = 0; r < 6; ++r) e[r] = (ACCV)0;
  for (long i = right; i < columns; i += VEC) keep_columns(e, seen, at + i, patch);
  for (int r = 0; patch == INPUTS && r < 6; ++r)
    seen->shared[r][at] = ends[r][0], seen->shared[r][at + 1] = ends[r][1];
}

// The other side of the transform for all tiles that were seen, VEC at a time, into the 36 panels,
// `step` apart. Writes whole vectors: up to VEC - 1 elements behind the tiles are overwritten.
ALWAYS_INLINE void transform_across(const SeenRows* seen, long tiles, TILE_SPACE ACC* panels,
                                    long step, const int patch) {
  for (long t = 0; t < tiles; t += VEC)
    for (int r = 0; r < 6; ++r) {
      ACCV d0, d1, d2, d3, d4, d5, unused2, unused3, v[6];
      SPLIT_BY_FOUR(seen->own[r] + 4 * t, d0, d1, d2, d3)
      if (patch == INPUTS) {
        SPLIT_BY_FOUR(seen->shared[r] + 4 * t + 4, d4, d5, unused2, unused3)
        TRANSFORM_INPUT(d0, d1, d2, d3, d4, d5, v[0], v[1], v[2], v[3], v[4], v[5])
      } else {
        TRANSFORM_GRADIENTS(d0, d1, d2, d3, v[0], v[1], v[2], v[3], v[4], v[5])
      }
#pragma unroll
      for (int s = 0; s < 6; ++s)
        *(TILE_SPACE loose_lanes*)(panels + (r * 6 + s) * step + t) = v[s];
    }
}

// The 4x4 results of VEC tiles of one filter: four rows, tile after tile.
void transform_sums(TILE_SPACE const ACC* sums, long step, ACC results[4][4 * VEC]) {
  ACCV e[4][6];
#pragma unroll
  for (int s = 0; s < 6; ++s)
    TRANSFORM_SUMS(VLOAD(0, sums + s * step), VLOAD(0, sums + (6 + s) * step),
                   VLOAD(0, sums + (12 + s) * step), VLOAD(0, sums + (18 + s) * step),
                   VLOAD(0, sums + (24 + s) * step), VLOAD(0, sums + (30 + s) * step), e[0][s],
                   e[1][s], e[2][s], e[3][s])
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    ACCV v[4], low, high, joined;
    TRANSFORM_SUMS(e[r][0], e[r][1], e[r][2], e[r][3], e[r][4], e[r][5], v[0], v[1], v[2], v[3])
    loose_lanes* to = (loose_lanes*)results[r];
    low.even = v[0].lo, low.odd = v[2].lo, high.even = v[1].lo, high.odd = v[3].lo;
    joined.even = low.lo, joined.odd = high.lo, to[0] = joined;
    joined.even = low.hi, joined.odd = high.hi, to[1] = joined;
    low.even = v[0].hi, low.odd = v[2].hi, high.even = v[1].hi, high.odd = v[3].hi;
    joined.even = low.lo, joined.odd = high.lo, to[2] = joined;
    joined.even = low.hi, joined.odd = high.hi, to[3] = joined;
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

// The inputs of the tiles [first, first + count) of channel c to `to`; the places are `step` apart.
// tiles: (all, down, across); image: channels, height and width of x, padding down and across.
ALWAYS_INLINE void transform_channel(global const T* x, long limit, int8 image, long4 tiles, long c,
                                     long first, long count, SeenRows* seen, TILE_SPACE ACC* to,
                                     long step, const int patch) {
  const long height = image.s1, width = image.s2;
  long n = first / (tiles.s1 * tiles.s2), down = first / tiles.s2 % tiles.s1;
  long across = first % tiles.s2;
  for (long done = 0; done < count;) {
    const long block = min(count - done, (long)SEEN);
    for (long tile = 0; tile < block;) {
      const long some = min(block - tile, tiles.s2 - across), columns = 4 * some + patch - 4;
      const long h = down * 4 - image.s3, w = across * 4 - image.s4;
      const long left = clamp(-w, 0L, columns), right = clamp(width - w, left, columns);
      see_columns(x, ((n * image.s0 + c) * height + h) * width + w, limit, width,
                  (int)clamp(-h, 0L, (long)patch), (int)clamp(height - h, 0L, (long)patch), left,
                  right, columns, seen, 4 * tile, patch);
      tile += some;
      across += some;
      if (across == tiles.s2) {
        across = 0;
        if (++down == tiles.s1) down = 0, ++n;
      }
    }
    transform_across(seen, block, to + done, step, patch);
    done += block;
  }
}

// The results of one filter for VEC tiles, of which `lanes` exist, into y.
#define STORE_TILES(sums, step, tile_places, lanes, to_filter, bias)       \
  {                                                                        \
    ACC results[4][4 * VEC];                                               \
    transform_sums(sums, step, results);                                   \
    for (long lane = 0; lane < (lanes); ++lane) {                          \
      const TilePlace tile = (tile_places)[lane];                          \
      const long to = tile.place + (to_filter);                            \
      if (tile.rows == 4 && tile.columns == 4) {                           \
        _Pragma("unroll") for (int r = 0; r < 4; ++r)                      \
            _Pragma("unroll") for (int s = 0; s < 4; ++s)                  \
                FINISH(to + r * Q + s, results[r][4 * lane + s] + (bias)); \
      } else {                                                             \
        for (int r = 0; r < tile.rows; ++r)                                \
          for (int s = 0; s < tile.columns; ++s)                           \
            FINISH(to + r * Q + s, results[r][4 * lane + s] + (bias));     \
      }                                                                    \
    }                                                                      \
  }
