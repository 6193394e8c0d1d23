// What the gradients lay out anew so that conv2d computes them; a work-item owns one element of the
// result. Needs T and ACC.
//   flip_filters      w' (C, K / groups, R, S): turned by 180 degrees, channels and filters swapped
//   transpose_filters w' (C R S, K / groups) of every group: a 1x1 filter per tap
//   col2im            dx from the columns (n, C, R, S, P, Q) that this filter makes of dy
//   rows_of_x         for parts of `length` pixels of all images: (parts, groups, length, taps)
//   rows_of_dy        the same pixels of dy as filters: (parts, K, length)
//   sum_parts         dw from the parts' (parts, K, taps)
#include "ops/conv2d/geometry.cl"

kernel void flip_filters(global const T* w, global T* to, const long8 at, const int16 g,
                         const long count) {
  w += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS;
  const int s = (int)(i % S), r = (int)(i / S % R), k = (int)(i / (S * R) % Kg);
  const int c = (int)(i / ((long)S * R * Kg));
  const long filter = ((long)(c / Cg) * Kg + k) * Cg + c % Cg;
  STORE_T(to, i, LOAD_T(w, (filter * R + R - 1 - r) * S + S - 1 - s));
}

kernel void transpose_filters(global const T* w, global ACC* to, const long8 at, const int16 g,
                              const long count) {
  w += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Kg = K / GROUPS;
  const long taps = (long)(C / GROUPS) * R * S;
  const long k = i % Kg, tap = i / Kg % taps, group = i / (Kg * taps);
  to[i] = LOAD_T(w, (group * Kg + k) * taps + tap);
}

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

kernel void rows_of_x(global const T* x, global ACC* to, const long8 at, const int16 g,
                      const long first, const int length, const long count) {
  x += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS;
  const long taps = (long)Cg * R * S, tap = i % taps, row = i / taps;
  const int group = (int)(row / length % GROUPS), s = (int)(tap % S), r = (int)(tap / S % R);
  const long place = first + row / ((long)length * GROUPS) * length + row % length;
  const long image = place / ((long)P * Q);
  const int pixel = (int)(place % ((long)P * Q));
  const int h = pixel / Q * STRIDE_H + r * DIL_H - PAD_H;
  const int v = pixel % Q * STRIDE_W + s * DIL_W - PAD_W;
  const bool inside = image < N && h >= 0 && h < H && v >= 0 && v < W;
  const long plane = image * C + group * Cg + tap / (R * S);
  to[i] = inside ? LOAD_T(x, (plane * H + h) * W + v) : (ACC)0;
}

kernel void rows_of_dy(global const T* dy, global ACC* to, const long8 at, const int16 g,
                       const long first, const int length, const long count) {
  dy += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const long k = i / length % K;
  const long place = first + i / ((long)length * K) * length + i % length;
  const long image = place / ((long)P * Q), pixel = place % ((long)P * Q);
  to[i] = image < N ? LOAD_T(dy, (image * K + k) * P * Q + pixel) : (ACC)0;
}

kernel void sum_parts(global const ACC* from, global T* dw, const long8 at, const long parts,
                      const long count) {
  from += at.s0, dw += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  ACC sum = 0;
  for (long part = 0; part < parts; ++part) sum += from[part * count + i];
  STORE_T(dw, i, sum);
}
