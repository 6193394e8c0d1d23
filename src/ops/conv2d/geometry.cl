// The sizes of a convolution as kernels get them, one int16 in the order of ConvGeometry (sizes.h),
// and which taps of a filter lie inside the image.
#define GEOMETRY(g)                                                                               \
  const int N = g.s0, C = g.s1, H = g.s2, W = g.s3, K = g.s4, R = g.s5, S = g.s6, P = g.s7,       \
            Q = g.s8, STRIDE_H = g.s9, STRIDE_W = g.sa, PAD_H = g.sb, PAD_W = g.sc, DIL_H = g.sd, \
            DIL_W = g.se, GROUPS = g.sf

// The first tap r >= 0 with start + r * dilation >= 0.
int first_tap(int start, int dilation) {
  return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
}

// The end of the taps below `taps` with start + r * dilation < size.
int end_tap(int start, int dilation, int size, int taps) {
  if (start >= size) return 0;
  return min(taps, (size - start + dilation - 1) / dilation);
}
