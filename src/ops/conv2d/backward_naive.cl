// The gradients of any 2-D convolution. conv2d_backward_data: a work-item owns one element of dx
// (n, c, h, w) and gathers what it took part in; a bias per channel c may be added
// (conv_transpose2d is this with one). conv2d_backward_weights: a work-item owns one element of dw
// (k, c, r, s); every row of dy is summed for itself, then every image. Needs T and ACC.
#include "ops/conv2d/geometry.cl"

// coalescing(conv2d_backward_data_naive): neighbouring items own neighbouring pixels: near elements
// of dy, the same weights.
kernel void conv2d_backward_data_naive(global const T* dy, global const T* w, global const T* b,
                                       global T* dx, const long8 at, const int16 g,
                                       const int has_bias, const long count) {
  dy += at.s0, w += at.s1, b += at.s2, dx += at.s3;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int x = (int)(i % W), h = (int)(i / W % H), c = (int)(i / ((long)H * W) % C);
  const long n = i / ((long)H * W * C);
  const int Cg = C / GROUPS, Kg = K / GROUPS, group = c / Cg;
  ACC total = 0;
  for (int k = group * Kg; k < (group + 1) * Kg; ++k) {
    const long filter = ((long)k * Cg + c % Cg) * R;
    ACC sum = 0;
    for (int r = 0; r < R; ++r) {
      const int ph = h + PAD_H - r * DIL_H;
      if (ph < 0 || ph % STRIDE_H != 0 || ph / STRIDE_H >= P) continue;
      const long row = ((n * K + k) * P + ph / STRIDE_H) * Q;
      for (int s = 0; s < S; ++s) {
        const int qw = x + PAD_W - s * DIL_W;
        if (qw < 0 || qw % STRIDE_W != 0 || qw / STRIDE_W >= Q) continue;
        sum += LOAD_T(dy, row + qw / STRIDE_W) * LOAD_T(w, (filter + r) * S + s);
      }
    }
    total += sum;
  }
  if (has_bias) total += LOAD_T(b, c);
  STORE_T(dx, i, total);
}

// The outputs q with 0 <= start + q * stride < size are begin ... end - 1.
int first_output(int start, int stride) { return start >= 0 ? 0 : (-start + stride - 1) / stride; }
int end_output(int start, int stride, int size, int outputs) {
  if (start >= size) return 0;
  return min(outputs, (size - start + stride - 1) / stride);
}

// coalescing(conv2d_backward_weights_naive): neighbouring items own neighbouring taps: shifted by
// one, they read the same rows of x, and the same elements of dy.
kernel void conv2d_backward_weights_naive(global const T* x, global const T* dy, global T* dw,
                                          const long8 at, const int16 g, const long count) {
  x += at.s0, dy += at.s1, dw += at.s2;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const int Cg = C / GROUPS, Kg = K / GROUPS;
  const int s = (int)(i % S), r = (int)(i / S % R), c = (int)(i / ((long)R * S) % Cg);
  const int k = (int)(i / ((long)R * S * Cg));
  const int h0 = r * DIL_H - PAD_H, w0 = s * DIL_W - PAD_W;
  const int p_begin = first_output(h0, STRIDE_H), p_end = end_output(h0, STRIDE_H, H, P);
  const int q_begin = first_output(w0, STRIDE_W), q_end = end_output(w0, STRIDE_W, W, Q);
  ACC total = 0;
  for (long n = 0; n < N; ++n) {
    const long plane = n * C + (long)(k / Kg) * Cg + c;
    ACC image = 0;
    for (int p = p_begin; p < p_end; ++p) {
      const long row = (plane * H + h0 + p * STRIDE_H) * W + w0;
      const long dy_row = ((n * K + k) * P + p) * Q;
      ACC sum = 0;
      for (int q = q_begin; q < q_end; ++q)
        sum += LOAD_T(x, row + (long)q * STRIDE_W) * LOAD_T(dy, dy_row + q);
      image += sum;
    }
    total += image;
  }
  STORE_T(dw, i, total);
}
