// Depthwise convolution: as many groups as channels, K / C filters per channel. A work-item owns
// ITEMS neighbouring pixels of a row of y, whose taps it reads once. Needs T and ACC, ITEMS,
// ACTIVATION.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

// coalescing(conv2d_depthwise): neighbouring items own neighbouring runs of ITEMS pixels (2 on
// GPUs), so that a warp reads and writes whole rows.
kernel void conv2d_depthwise(global const T* x, global const T* w, global const T* b,
                             global T* y RESIDUAL_PARAMETER, const long8 at, const int16 g,
                             const int has_bias, const long count) {
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int parts = (Q + ITEMS - 1) / ITEMS;
  const int q0 = (int)(i % parts) * ITEMS, p = (int)(i / parts % P);
  const long plane = i / ((long)parts * P);  // (n, k)
  const int k = (int)(plane % K);
  const long channel = plane / K * C + k / (K / C);
  const int h0 = p * STRIDE_H - PAD_H, w0 = q0 * STRIDE_W - PAD_W;
  const int r_begin = first_tap(h0, DIL_H), r_end = end_tap(h0, DIL_H, H, R);
  const int last = w0 + (ITEMS - 1) * STRIDE_W + (S - 1) * DIL_W;
  const bool inside = w0 >= 0 && last < W;
  ACC sums[ITEMS];
  for (int j = 0; j < ITEMS; ++j) sums[j] = 0;
  for (int r = r_begin; r < r_end; ++r) {
    const long row = (channel * H + h0 + r * DIL_H) * W + w0;
    for (int s = 0; s < S; ++s) {
      const ACC weight = LOAD_T(w, ((long)k * R + r) * S + s);
      if (inside) {
        for (int j = 0; j < ITEMS; ++j)
          sums[j] += LOAD_T(x, row + s * DIL_W + j * STRIDE_W) * weight;
      } else {
        for (int j = 0; j < ITEMS; ++j) {
          const int column = w0 + s * DIL_W + j * STRIDE_W;
          if (column >= 0 && column < W) sums[j] += LOAD_T(x, row - w0 + column) * weight;
        }
      }
    }
  }
  const ACC bias = has_bias ? LOAD_T(b, k) : (ACC)0;
  for (int j = 0; j < ITEMS; ++j)
    if (q0 + j < Q) FINISH((plane * P + p) * Q + q0 + j, sums[j] + bias);
}
