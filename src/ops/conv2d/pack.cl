// Columns for the product of packed.cl: (N, C R S, 1, P Q), which makes it a 1x1 convolution. A
// work-item owns one element. Needs T and ACC.
#include "ops/conv2d/geometry.cl"

// device(conv2d_im2col): CPU
// to (images, C, R, S, width) from the image `first` on, width >= P Q.
kernel void conv2d_im2col(global const T* x, global T* to, const long8 at, const int16 g,
                          const long first, const long width, const long count) {
  x += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const long pixel = i % width, tap = i / width % (R * S), plane = i / (width * R * S);
  const int h = (int)(pixel / Q) * STRIDE_H + (int)(tap / S) * DIL_H - PAD_H;
  const int w = (int)(pixel % Q) * STRIDE_W + (int)(tap % S) * DIL_W - PAD_W;
  const bool inside = pixel < (long)P * Q && h >= 0 && h < H && w >= 0 && w < W;
  STORE_T(to, i, inside ? LOAD_T(x, ((first * C + plane) * H + h) * W + w) : (ACC)0);
}
