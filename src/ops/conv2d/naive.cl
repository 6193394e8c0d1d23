// Any 2-D convolution: y = activation(conv(x, w) + b + residual). A work-item owns one element of y
// (n, k, p, q). Needs T and ACC, ACTIVATION. Each channel is summed for itself, so that long sums
// do not lose small terms.
#include "ops/conv2d/epilogue.cl"
#include "ops/conv2d/geometry.cl"

// coalescing(conv2d_naive): neighbouring items own neighbouring pixels of a row: they read near
// elements of x, the same weight, and write neighbours.
kernel void conv2d_naive(global const T* x, global const T* w, global const T* b,
                         global T* y RESIDUAL_PARAMETER, const long8 at, const int16 g,
                         const int has_bias, const long count) {
  x += at.s0, w += at.s1, b += at.s2, y += at.s3;
  MOVE_RESIDUAL(at.s4);
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int q = (int)(i % Q), p = (int)(i / Q % P), k = (int)(i / ((long)P * Q) % K);
  const long n = i / ((long)P * Q * K);
  const int Cg = C / GROUPS, group = k / (K / GROUPS);
  const int h0 = p * STRIDE_H - PAD_H, w0 = q * STRIDE_W - PAD_W;
  const int r_begin = first_tap(h0, DIL_H), r_end = end_tap(h0, DIL_H, H, R);
  const int s_begin = first_tap(w0, DIL_W), s_end = end_tap(w0, DIL_W, W, S);
  ACC total = 0;
  for (int c = 0; c < Cg; ++c) {
    const long plane = (n * C + (long)group * Cg + c) * H;
    const long filter = ((long)k * Cg + c) * R;
    ACC sum = 0;
    for (int r = r_begin; r < r_end; ++r) {
      const long row = (plane + h0 + r * DIL_H) * W + w0;
      for (int s = s_begin; s < s_end; ++s)
        sum += LOAD_T(x, row + s * DIL_W) * LOAD_T(w, (filter + r) * S + s);
    }
    total += sum;
  }
  if (has_bias) total += LOAD_T(b, k);
  FINISH(i, total);
}
