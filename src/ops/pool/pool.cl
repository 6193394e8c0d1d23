// Pooling of images, x (planes, H, W) to y (planes, OH, OW), and its gradients. A work-item owns
// one element of the result (the gradients gather what comes to a pixel: no atomics); the range is
// guarded. The windows are those of geometry.h. Defines: T, ACC, LOAD_T, STORE_T, MAX, ADAPTIVE,
// COUNT_PADDING, BACKWARD (0 or 1).

// in: height and width of the image; out: of the pooled one; window, stride, padding likewise.
#if ADAPTIVE
#define BEGIN(o, c) ((o)*in.c / out.c)
#define END(o, c) ((((o) + 1) * in.c + out.c - 1) / out.c)
#define FIRST(i, c) ((i)*out.c / in.c)
#define LAST(i, c) ((((i) + 1) * out.c + in.c - 1) / in.c - 1)
#else
#define BEGIN(o, c) max((o)*stride.c - padding.c, 0L)
#define END(o, c) min((o)*stride.c - padding.c + window.c, in.c)
#define FIRST(i, c) \
  ((i) + padding.c - window.c < 0 ? 0 : ((i) + padding.c - window.c) / stride.c + 1)
#define LAST(i, c) min(((i) + padding.c) / stride.c, out.c - 1)
#endif
#if COUNT_PADDING && !ADAPTIVE
#define DIVISOR(oh, ow) (window.x * window.y)
#else
#define DIVISOR(oh, ow) ((END(oh, x) - BEGIN(oh, x)) * (END(ow, y) - BEGIN(ow, y)))
#endif

#if !BACKWARD
#if MAX
__kernel void max_pool(__global const T* x, __global T* y, __global int* indices, long8 at, ulong n,
                       long2 in, long2 out, long2 window, long2 stride, long2 padding) {
  indices += at.s2;
#else
__kernel void avg_pool(__global const T* x, __global T* y, long8 at, ulong n, long2 in, long2 out,
                       long2 window, long2 stride, long2 padding) {
#endif
  const ulong i = get_global_id(0);
  if (i >= n) return;
  x += at.s0;
  y += at.s1;
  const long ow = (long)(i % (ulong)out.y);
  const ulong row = i / (ulong)out.y;
  const long oh = (long)(row % (ulong)out.x);
  __global const T* plane = x + (long)(row / (ulong)out.x) * in.x * in.y;
  const long top = BEGIN(oh, x), bottom = END(oh, x), left = BEGIN(ow, y), right = END(ow, y);
#if MAX
  long best = top * in.y + left;
  ACC largest = LOAD_T(plane, best);
  for (long h = top; h < bottom; ++h)
    for (long w = left; w < right; ++w) {
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
  for (long h = top; h < bottom; ++h)
    for (long w = left; w < right; ++w) sum += LOAD_T(plane, h * in.y + w);
  STORE_T(y, i, sum / (ACC)DIVISOR(oh, ow));
#endif
}
#else
#if MAX
__kernel void max_pool_backward(__global const T* dy, __global const int* indices, __global T* dx,
                                long8 at, ulong n, long2 in, long2 out, long2 window, long2 stride,
                                long2 padding) {
  indices += at.s1;
  dx += at.s2;
#else
__kernel void avg_pool_backward(__global const T* dy, __global T* dx, long8 at, ulong n, long2 in,
                                long2 out, long2 window, long2 stride, long2 padding) {
  dx += at.s1;
#endif
  const ulong i = get_global_id(0);
  if (i >= n) return;
  dy += at.s0;
  const long w = (long)(i % (ulong)in.y);
  const ulong row = i / (ulong)in.y;
  const long h = (long)(row % (ulong)in.x);
  const long plane = (long)(row / (ulong)in.x) * out.x * out.y;
  const long low = FIRST(w, y), high = LAST(w, y);
  ACC sum = 0;
  for (long oh = FIRST(h, x); oh <= LAST(h, x); ++oh)
    for (long ow = low; ow <= high; ++ow) {
      const long o = plane + oh * out.y + ow;
#if MAX
      if ((long)indices[o] == h * in.y + w) sum += LOAD_T(dy, o);
#else
      sum += LOAD_T(dy, o) / (ACC)DIVISOR(oh, ow);
#endif
    }
  STORE_T(dx, i, sum);
}
#endif
