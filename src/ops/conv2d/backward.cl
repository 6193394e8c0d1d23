// What the gradients lay out anew so that conv2d computes them; a work-item owns one element of the
// result where nothing else is said. Needs T and ACC.
//   flip_filters      w' (C, K / groups, R, S): turned by 180 degrees, channels and filters swapped
//   transpose_filters w' (C R S, K / groups) of every group: a 1x1 filter per tap
//   block_filters     w' (groups, blocks of channels, R, K / groups, S, channels of a block)
//   col2im            dx from the columns (n, C, R, S, P, Q) that this filter makes of dy
//   rows_of_x         for parts of `length` pixels of all images: (parts, groups, length, taps)
//   rows_of_dy        the same pixels of dy as filters: (parts, K, length)
//   sum_parts         dw from the parts' (parts, K, taps)
#include "ops/conv2d/geometry.cl"

// An item per channel and filter.
// coalescing(flip_filters): each item reads and writes the taps of one filter, which are
// neighbours; a warp together whole lines.
kernel void flip_filters(global const T* w, global T* to, const long8 at, const int16 g,
                         const long count) {
  w += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS, taps = R * S;
  const int k = (int)(i % Kg), c = (int)(i / Kg);
  const long filter = ((long)(c / Cg) * Kg + k) * Cg + c % Cg;
  for (int tap = 0; tap < taps; ++tap)
    STORE_T(to, i * taps + tap, LOAD_T(w, filter * taps + taps - 1 - tap));
}

// An item per group and tap.
// coalescing(transpose_filters): neighbouring items read neighbouring taps; each writes its own row
// of Kg filters.
kernel void transpose_filters(global const T* w, global ACC* to, const long8 at, const int16 g,
                              const long count) {
  w += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Kg = K / GROUPS;
  const long taps = (long)(C / GROUPS) * R * S, tap = i % taps, group = i / taps;
  for (int k = 0; k < Kg; ++k) to[i * Kg + k] = LOAD_T(w, (group * Kg + k) * taps + tap);
}

// Channels that a block lacks are zero.
// device(block_filters): CPU
kernel void block_filters(global const T* w, global ACC* to, const long8 at, const int16 g,
                          const int block, const long count) {
  w += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS, blocks = (Cg + block - 1) / block;
  const long s = i / block % S, k = i / block / S % Kg, r = i / block / S / Kg % R;
  const long both = i / block / S / Kg / R, group = both / blocks;
  const int c = (int)(both % blocks * block + i % block);
  to[i] = c < Cg ? LOAD_T(w, (((group * Kg + k) * Cg + c) * R + r) * S + s) : (ACC)0;
}

// coalescing(col2im): neighbouring items write neighbouring pixels and read neighbours of each
// plane of columns.
kernel void col2im(global const ACC* columns, global const T* b, global T* dx, const long8 at,
                   const int16 g, const int has_bias, const long count) {
  columns += at.s0, b += at.s1, dx += at.s2;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int x = (int)(i % W), h = (int)(i / W % H);
  const long plane = i / ((long)H * W);
  ACC sum = has_bias ? LOAD_T(b, plane % C) : (ACC)0;
  for (int r = 0; r < R; ++r) {
    const int ph = h + PAD_H - r * DIL_H;
    if (ph < 0 || ph % STRIDE_H != 0 || ph / STRIDE_H >= P) continue;
    for (int s = 0; s < S; ++s) {
      const int qw = x + PAD_W - s * DIL_W;
      if (qw < 0 || qw % STRIDE_W != 0 || qw / STRIDE_W >= Q) continue;
      sum += columns[(((plane * R + r) * S + s) * P + ph / STRIDE_H) * Q + qw / STRIDE_W];
    }
  }
  STORE_T(dx, i, sum);
}

// Dimensions: blocks of `block` channels of a group; rows.
// coalescing(rows_of_x): on GPUs neighbouring items own neighbouring channels and write their taps
// one after the other, whole lines by a warp together.
kernel void rows_of_x(global const T* x, global ACC* to, const long8 at, const int16 g,
                      const long first, const int length, const int block, const long rows) {
  x += at.s0, to += at.s1;
  const long row = get_global_id(1);
  if (row >= rows) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS, group = (int)(row / length % GROUPS);
  const long place = first + row / ((long)length * GROUPS) * length + row % length;
  const long image = place / ((long)P * Q);
  const int pixel = (int)(place % ((long)P * Q));
  const int h0 = pixel / Q * STRIDE_H - PAD_H, w0 = pixel % Q * STRIDE_W - PAD_W;
  const int c_begin = get_global_id(0) * block, c_end = min(Cg, c_begin + block);
  to += (row * Cg + c_begin) * R * S;
  for (int c = c_begin; c < c_end; ++c) {
    const long plane = (image * C + group * Cg + c) * H;
    for (int r = 0; r < R; ++r) {
      const int h = h0 + r * DIL_H;
      const bool inside = image < N && h >= 0 && h < H;
      for (int s = 0; s < S; ++s) {
        const int v = w0 + s * DIL_W;
        *to++ = inside && v >= 0 && v < W ? LOAD_T(x, (plane + h) * W + v) : (ACC)0;
      }
    }
  }
}

// Dimensions: blocks of `block` pixels of a part; (parts, K).
// coalescing(rows_of_dy): neighbouring items write neighbours.
kernel void rows_of_dy(global const T* dy, global ACC* to, const long8 at, const int16 g,
                       const long first, const int length, const int block, const long rows) {
  dy += at.s0, to += at.s1;
  const long row = get_global_id(1);
  if (row >= rows) return;
  GEOMETRY(g);
  const long k = row % K, pixels = (long)P * Q;
  const int begin = get_global_id(0) * block, end = min(length, begin + block);
  const long place = first + row / K * length + begin;
  long image = place / pixels, pixel = place % pixels;
  for (int i = begin; i < end; ++i) {
    to[row * length + i] = image < N ? LOAD_T(dy, (image * K + k) * pixels + pixel) : (ACC)0;
    if (++pixel == pixels) pixel = 0, ++image;
  }
}

// coalescing(sum_parts): neighbouring items read neighbours of each part and write neighbours.
kernel void sum_parts(global const ACC* from, global T* dw, const long8 at, const long parts,
                      const long count) {
  from += at.s0, dw += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  ACC sum = 0;
  for (long part = 0; part < parts; ++part) sum += from[part * count + i];
  STORE_T(dw, i, sum);
}
