// The gradient with respect to w for CPUs: dw (K, C R S) is a product of dy (K, pixels) and the
// windows of x (pixels, C R S), summed over the pixels of all images. A work-group is one
// work-item, which owns a block of filters and channels and a part of the pixels. Block after block
// of the pixels, it copies the rows of x that they see (padded, so that no tap is tested) and the
// filters' dy, transposed to PANEL filters side by side, into local memory; then every tile of TAPS
// taps x PANEL filters is a loop over the pixels with its sums in registers: dy is vectors, x
// broadcast. Dimensions: parts of the pixels; blocks of filters; groups * blocks of channels. sums
// (parts, groups, panels, taps tile after tile, PANEL), for weights_sum.cl to add. Needs T and ACC
// and vector_macros; VECTORS of a panel; of a tile CHANNELS, FILTER_ROWS and FILTER_COLUMNS (all of
// a row); PIXELS of a block; ROW_ELEMENTS of local memory for x; POINTWISE (a filter of one tap:
// pixels are gathered without gaps); STEP_W, DILATION_W.
#include "ops/conv2d/geometry.cl"
#include "ops/lanes.cl"

#define PANEL (VECTORS * VEC)
#define TAPS (CHANNELS * FILTER_ROWS * FILTER_COLUMNS)

#if POINTWISE
// Constant distances, so that a dozen rows need no dozen pointers.
#define CHANNEL_PITCH (PIXELS + VEC)
#define TAP_AT(c, r, s) ((c)*CHANNEL_PITCH)
#define PIXEL_STEP 1
#define GATHER STEP_W
#else
#define CHANNEL_PITCH ((long)channel_rows * pitch)
#define TAP_AT(c, r, s) ((c)*channel + (r)*row + (s)*DILATION_W)
#define PIXEL_STEP STEP_W
#define GATHER 1
#endif

// A block of VEC filters, of which `filters` exist, and `length` pixels, into lanes of a panel.
static inline void dy_into_panel(global const T* dy, long plane, int filters, int length,
                                 local ACC* panel) {
  const bool whole = filters >= VEC && length >= VEC;
  for (int start = 0; start < length; start += VEC) {
    const int j = max(min(start, length - VEC), 0);
    ACCV v[VEC];
    if (whole) {
#pragma unroll
      for (int i = 0; i < VEC; ++i) v[i] = LOADV(dy, i * plane + j);
    } else {
      for (int i = 0; i < VEC; ++i) {
        ACC lanes[VEC];
        for (int l = 0; l < VEC; ++l)
          lanes[l] = i < filters && j + l < length ? LOAD_T(dy, i * plane + j + l) : (ACC)0;
        v[i] = VLOAD(0, lanes);
      }
    }
    transpose_lanes(v);
    if (length >= VEC) {
#pragma unroll
      for (int i = 0; i < VEC; ++i) STORE_LOCAL(v[i], panel + (j + i) * PANEL);
    } else {
      for (int i = 0; i < length; ++i) STORE_LOCAL(v[i], panel + (j + i) * PANEL);
    }
  }
}

// Rows of `length` elements that are read soon, `step` apart.
static inline void fetch_rows(global const T* rows, long step, int count, int length) {
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < length; j += 64 / (int)sizeof(T)) FETCH_NEAR(rows + i * step + j);
}

// `row_step`: of x, to the next row of pixels; `channel` and `row`: to the next one of a filter.
__attribute__((always_inline)) static inline void add_tile(
    local const ACC* x, local const ACC* panel, global ACC* sums, const int rows, const int columns,
    const long row_step, const long channel, const long row, const bool first, const int vectors) {
  ACCV sum[TAPS][VECTORS];
#pragma unroll
  for (int i = 0; i < TAPS; ++i)
#pragma unroll
    for (int v = 0; v < vectors; ++v) sum[i][v] = first ? (ACCV)0 : VLOAD(i * VECTORS + v, sums);
  for (int p = 0; p < rows; ++p) {
    local const ACC* at = x + p * row_step;
    for (int q = 0; q < columns; ++q) {
      ACCV dy[VECTORS];
#pragma unroll
      for (int v = 0; v < vectors; ++v) dy[v] = VLOAD(v, panel);
#pragma unroll
      for (int i = 0; i < TAPS; ++i) {
        const int s = i % FILTER_COLUMNS, r = i / FILTER_COLUMNS % FILTER_ROWS;
        const ACCV value = (ACCV)(at[TAP_AT(i / FILTER_COLUMNS / FILTER_ROWS, r, s)]);
#pragma unroll
        for (int v = 0; v < vectors; ++v) sum[i][v] = MULTIPLY_ADD(value, dy[v], sum[i][v]);
      }
      at += PIXEL_STEP, panel += PANEL;
    }
  }
#pragma unroll
  for (int i = 0; i < TAPS; ++i)
#pragma unroll
    for (int v = 0; v < vectors; ++v) STORE_GLOBAL(sum[i][v], sums + (i * VECTORS + v) * VEC);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void weights_tiles(
    global const T* x, global const T* dy, global ACC* sums, const long8 at, const int16 g,
    const int parts, const int block_p, const int block_q, const int block_k, const int block_c,
    const int pitch, const int channel_rows) {
  local ACC panel[PIXELS * PANEL];
  local ACC rows[ROW_ELEMENTS];
  GEOMETRY(g);
  x += at.s0, dy += at.s1, sums += at.s2;
  const int Cg = C / GROUPS, Kg = K / GROUPS, part = get_group_id(0);
  const int blocks_c = (Cg + block_c - 1) / block_c, group = get_group_id(2) / blocks_c;
  const int k0 = get_group_id(1) * block_k, k_end = min(Kg, k0 + block_k);
  const int c0 = get_group_id(2) % blocks_c * block_c, c_end = min(Cg, c0 + block_c);
  const int row_tiles = (R + FILTER_ROWS - 1) / FILTER_ROWS;
  const int channel_taps = row_tiles * FILTER_ROWS * S, panels = (Kg + PANEL - 1) / PANEL;
  const long taps = (long)((Cg + CHANNELS - 1) / CHANNELS) * CHANNELS * channel_taps;
  sums += ((long)part * GROUPS + group) * panels * taps * PANEL;
  const long channel = CHANNEL_PITCH;
  const int blocks_p = (P + block_p - 1) / block_p, blocks_q = (Q + block_q - 1) / block_q;
  const long blocks = (long)N * blocks_p * blocks_q;
  const long begin = blocks * part / parts, end = blocks * (part + 1) / parts;
  for (long block = begin; block < end; ++block) {
    const int q0 = block % blocks_q * block_q, p0 = block / blocks_q % blocks_p * block_p;
    const long n = block / blocks_q / blocks_p;
    const int np = min(block_p, P - p0), nq = min(block_q, Q - q0);
    const int h0 = p0 * STRIDE_H - PAD_H, w0 = q0 * STEP_W - PAD_W;
    const int down = POINTWISE ? STRIDE_H : 1;
    const int height = POINTWISE ? np : (np - 1) * STRIDE_H + (R - 1) * DIL_H + 1;
    const int length = POINTWISE ? nq : (nq - 1) * STEP_W + (S - 1) * DILATION_W + 1;
    const int left = clamp((GATHER - 1 - w0) / GATHER, 0, length);
    const int right = clamp((W - w0 + GATHER - 1) / GATHER, left, length);
    for (int c = c0; c < c_end + CHANNELS - 1; ++c) {
      if (c >= c_end && (c - c0) % CHANNELS == 0) break;
      for (int i = 0; i < height; ++i) {
        const int h = h0 + i * down;
        const bool inside = c < c_end && h >= 0 && h < H;
        global const T* from = x + ((n * C + (long)group * Cg + c) * H + h) * W + w0;
        local ACC* to = rows + (c - c0) * channel + i * (POINTWISE ? nq : pitch);
#if GATHER > 1
        for (int j = 0; j < length; ++j)
          to[j] = inside && j >= left && j < right ? LOAD_T(from, (long)j * GATHER) : (ACC)0;
#else
        copy_row(from, inside ? left : 0, inside ? right : 0, length, to);
#endif
      }
    }
    // What comes next, some of it with every panel and tile: channels of the next block, as if its
    // pixels lay behind these.
    const int panels_here = (k_end - k0 + PANEL - 1) / PANEL;
    const int channel_share = (c_end - c0 + panels_here - 1) / panels_here;
    const int seen = np * STRIDE_H * nq * STEP_W;
    global const T* next_x = x + ((n * C + (long)group * Cg + c0) * H + h0) * W + w0 +
                             (blocks_q > 1 ? nq * STEP_W : seen);
    int fetched_c = 0;
    for (int k = k0; k < k_end; k += PANEL) {
      fetch_rows(next_x + (long)fetched_c * H * W, (long)H * W,
                 min(channel_share, c_end - c0 - fetched_c), seen);
      fetched_c += channel_share;
      for (int v = 0; v < PANEL && k + v < Kg; v += VEC) {
        global const T* from = dy + ((n * K + (long)group * Kg + k + v) * P + p0) * Q + q0;
        // Whole rows lie one behind the other.
        const int runs = nq == Q ? 1 : np, run = nq == Q ? np * nq : nq;
        for (int i = 0; i < runs; ++i)
          dy_into_panel(from + (long)i * Q, (long)P * Q, Kg - k - v, run,
                        panel + v + i * nq * PANEL);
      }
      // dy of the next panel, or of the next block's first one.
      const bool more = k + PANEL < k_end;
      global const T* next_dy =
          dy + ((n * K + (long)group * Kg + (more ? k + PANEL : k0)) * P + p0) * Q + q0;
      if (!more) next_dy += blocks_q > 1 ? nq : np * Q;
      const int tiles = (c_end - c0 + CHANNELS - 1) / CHANNELS * row_tiles;
      const int share = (PANEL + tiles - 1) / tiles;
      int fetched = 0;
      for (int c = c0; c < c_end; c += CHANNELS)
        for (int r = 0; r < row_tiles; ++r) {
          fetch_rows(next_dy + (long)fetched * P * Q, (long)P * Q, min(share, PANEL - fetched),
                     np * nq);
          fetched += share;
          const int tap = c * channel_taps + r * TAPS;
          global ACC* to = sums + (k / PANEL * taps + tap) * PANEL;
          local const ACC* from = rows + (c - c0) * channel + (long)r * FILTER_ROWS * DIL_H * pitch;
          const int lines = POINTWISE ? 1 : np, columns = POINTWISE ? np * nq : nq;
          const long step = (long)STRIDE_H * pitch, row = (long)DIL_H * pitch;
          const bool first = block == begin;
          if (VECTORS > 1 && Kg - k <= (VECTORS - 1) * VEC)
            add_tile(from, panel, to, lines, columns, step, channel, row, first, VECTORS - 1);
          else
            add_tile(from, panel, to, lines, columns, step, channel, row, first, VECTORS);
        }
    }
  }
}
