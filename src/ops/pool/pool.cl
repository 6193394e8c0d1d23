// Pooling of images, x (planes, H, W) to y (planes, OH, OW), and its gradients. A work-item owns
// one element of the result (the gradients gather what comes to a pixel: no atomics); the range is
// guarded. The windows are those of geometry.h. Defines: T, ACC, LOAD_T, STORE_T, MAX, ADAPTIVE,
// COUNT_PADDING, BACKWARD (0 or 1), POS (int
// where all positions fit: long divisions are slow), POS2, and UPOS, its unsigned counterpart.

// in: height and width of the image; out: of the pooled one; window, stride, padding likewise.
#if ADAPTIVE
#define BEGIN(o, c) ((o)*in.c / out.c)
#define END(o, c) ((((o) + 1) * in.c + out.c - 1) / out.c)
#define FIRST(i, c) ((i)*out.c / in.c)
#define LAST(i, c) ((((i) + 1) * out.c + in.c - 1) / in.c - 1)
#else
#define BEGIN(o, c) max((o)*stride.c - padding.c, (POS)0)
#define END(o, c) min((o)*stride.c - padding.c + window.c, in.c)
#define FIRST(i, c) \
  ((i) + padding.c - window.c < 0 ? 0 : ((i) + padding.c - window.c) / stride.c + 1)
#define LAST(i, c) min(((i) + padding.c) / stride.c, out.c - 1)
#endif
#if COUNT_PADDING && !ADAPTIVE
#define DIVISOR(oh, ow) ((ACC)window.x * (ACC)window.y)
#else
#define DIVISOR(oh, ow) ((END(oh, x) - BEGIN(oh, x)) * (END(ow, y) - BEGIN(ow, y)))
#endif

#if !BACKWARD
#if MAX
// coalescing(max_pool, avg_pool): neighbouring items write neighbours and walk windows one stride
// apart in the same rows.
__kernel void max_pool(__global const T* x, __global T* y, __global int* indices, long8 at, ulong n,
                       POS2 in, POS2 out, POS2 window, POS2 stride, POS2 padding) {
  indices += at.s2;
#else
__kernel void avg_pool(__global const T* x, __global T* y, long8 at, ulong n, POS2 in, POS2 out,
                       POS2 window, POS2 stride, POS2 padding) {
#endif
  const ulong i = get_global_id(0);
  if (i >= n) return;
  x += at.s0;
  y += at.s1;
  const UPOS row = (UPOS)i / (UPOS)out.y;
  const POS ow = (POS)((UPOS)i - row * (UPOS)out.y), oh = (POS)(row % (UPOS)out.x);
  __global const T* plane = x + (long)(row / (UPOS)out.x) * in.x * in.y;
  const POS top = BEGIN(oh, x), bottom = END(oh, x), left = BEGIN(ow, y), right = END(ow, y);
#if MAX
  POS best = top * in.y + left;
  ACC largest = LOAD_T(plane, best);
  for (POS h = top; h < bottom; ++h)
    for (POS w = left; w < right; ++w) {
      const ACC value = LOAD_T(plane, h * in.y + w);
      // NaN is larger than everything, and stays.
      if (!(value > largest) && !isnan(value)) continue;
      largest = value;
      best = h * in.y + w;
    }
  STORE_T(y, i, largest);
  indices[i] = (int)best;
#else
  ACC sum = 0;
  for (POS h = top; h < bottom; ++h)
    for (POS w = left; w < right; ++w) sum += LOAD_T(plane, h * in.y + w);
  STORE_T(y, i, sum / (ACC)DIVISOR(oh, ow));
#endif
}
#else
#if MAX
// coalescing(max_pool_backward, avg_pool_backward): neighbouring items write neighbours and gather
// from near elements of the same rows of dy.
__kernel void max_pool_backward(__global const T* dy, __global const int* indices, __global T* dx,
                                long8 at, ulong n, POS2 in, POS2 out, POS2 window, POS2 stride,
                                POS2 padding) {
  indices += at.s1;
  dx += at.s2;
#else
__kernel void avg_pool_backward(__global const T* dy, __global T* dx, long8 at, ulong n, POS2 in,
                                POS2 out, POS2 window, POS2 stride, POS2 padding) {
  dx += at.s1;
#endif
  const ulong i = get_global_id(0);
  if (i >= n) return;
  dy += at.s0;
  const UPOS row = (UPOS)i / (UPOS)in.y;
  const POS w = (POS)((UPOS)i - row * (UPOS)in.y), h = (POS)(row % (UPOS)in.x);
  const long plane = (long)(row / (UPOS)in.x) * out.x * out.y;
  const POS low = FIRST(w, y), high = LAST(w, y);
  ACC sum = 0;
  for (POS oh = FIRST(h, x); oh <= LAST(h, x); ++oh)
    for (POS ow = low; ow <= high; ++ow) {
      const long o = plane + oh * out.y + ow;
#if MAX
      if ((POS)indices[o] == h * in.y + w) sum += LOAD_T(dy, o);
#else
      sum += LOAD_T(dy, o) / (ACC)DIVISOR(oh, ow);
#endif
    }
  STORE_T(dx, i, sum);
}
#endif
