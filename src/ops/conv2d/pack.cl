// What is laid out anew before the products of packed.cl, in the accumulator's type. A work-item
// owns one element of the result where nothing else is said. Needs T and ACC.
//   conv2d_pad           x with its padding
//   conv2d_im2col        columns: (N, C R S, 1, P Q), which makes it a 1x1 convolution
#include "ops/conv2d/geometry.cl"

// device(conv2d_pad, conv2d_im2col): CPU
// to (planes, height, width) of x (planes, H, W). Dimensions: blocks of `block` columns; rows.
kernel void conv2d_pad(global const T* x, global ACC* to, const long8 at, const int16 g,
                       const int height, const int width, const int block, const long rows) {
  x += at.s0, to += at.s1;
  const long row = get_global_id(1);
  if (row >= rows) return;
  GEOMETRY(g);
  const int h = (int)(row % height) - PAD_H;
  const long plane = row / height;
  const bool inside = h >= 0 && h < H;
  const int begin = get_global_id(0) * block, end = min(width, begin + block);
  const int left = inside ? clamp(PAD_W, begin, end) : end;
  const int right = inside ? clamp(PAD_W + W, begin, end) : end;
  to += row * width;
  const long from = (plane * H + h) * W - PAD_W;
  for (int i = begin; i < left; ++i) to[i] = (ACC)0;
  for (int i = left; i < right; ++i) to[i] = LOAD_T(x, from + i);
  for (int i = right; i < end; ++i) to[i] = (ACC)0;
}

// to (images, C, R, S, width) from the image `first` on, width >= P Q.
kernel void conv2d_im2col(global const T* x, global ACC* to, const long8 at, const int16 g,
                          const long first, const long width, const long count) {
  x += at.s0, to += at.s1;
  const long i = get_global_id(0);
  if (i >= count) return;
  GEOMETRY(g);
  const long pixel = i % width, tap = i / width % (R * S), plane = i / (width * R * S);
  const int h = (int)(pixel / Q) * STRIDE_H + (int)(tap / S) * DIL_H - PAD_H;
  const int w = (int)(pixel % Q) * STRIDE_W + (int)(tap % S) * DIL_W - PAD_W;
  const bool inside = pixel < (long)P * Q && h >= 0 && h < H && w >= 0 && w < W;
  to[i] = inside ? LOAD_T(x, ((first * C + plane) * H + h) * W + w) : (ACC)0;
}
