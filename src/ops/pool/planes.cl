// Pooling of images as in pool.cl, for CPUs: a work-item owns `block` planes and walks through
// them, without a division. Gradients are added where they belong: no other work-item writes there.
// Defines: T, ACC, LOAD_T, STORE_T, MAX, COUNT_PADDING, BACKWARD (0 or 1), KH KW SH SW: window and
// stride. T is ACC with BACKWARD. VEC and vector_macros where VEC neighbouring windows are taken at
// a time, and LANEV, LANES: the vector type of their numbers, and 0, 1, 2, ...
// device(max_pool_planes, avg_pool_planes, max_pool_backward_planes): CPU

#define FOR_PLANES                                    \
  long plane = (long)get_global_id(0) * block;        \
  const long last_plane = min(planes, plane + block); \
  for (; plane < last_plane; ++plane)

// The pixels of window o along an axis, and the windows that lie within the image.
#define BEGIN(o, S, c) max((o)*S - padding.c, 0)
#define END(o, S, K, c) min((o)*S - padding.c + K, in.c)
#define FIRST_WHOLE ((padding.y + SW - 1) / SW)
#define END_WHOLE (in.y + padding.y < KW ? 0 : min(out.y, (in.y + padding.y - KW) / SW + 1))

#if COUNT_PADDING
#define DIVISOR(rows, columns) ((ACC)(KH * KW))
#else
#define DIVISOR(rows, columns) ((ACC)((rows) * (columns)))
#endif

#if !BACKWARD
#if MAX
#define INDICES , __global int* restrict indices
#define PASS_INDICES , indices
#define START(at)              \
  ACC largest = LOAD_T(x, at); \
  int best = at
#define TAKE(at)                                             \
  {                                                          \
    const ACC value = LOAD_T(x, at);                         \
    const int is_larger = value > largest || value != value; \
    largest = is_larger ? value : largest;                   \
    best = is_larger ? (at) : best;                          \
  }
#define FINISH(ow, rows, columns) \
  STORE_T(y, ow, largest);        \
  indices[ow] = best
#else
#define INDICES
#define PASS_INDICES
#define START(at) ACC sum = 0
#define TAKE(at) sum += LOAD_T(x, at)
#define FINISH(ow, rows, columns) STORE_T(y, ow, sum / DIVISOR(rows, columns))
#endif

// One window, which may reach over the edges. x is the plane, y the row of the result.
void pool_one(__global const T* restrict x, __global T* restrict y INDICES, int oh, int ow, int2 in,
              int2 padding) {
  const int top = BEGIN(oh, SH, x), bottom = END(oh, SH, KH, x);
  const int left = BEGIN(ow, SW, y), right = END(ow, SW, KW, y);
  START(top * in.y + left);
  for (int h = top; h < bottom; ++h)
    for (int w = left; w < right; ++w) TAKE(h * in.y + w);
  FINISH(ow, bottom - top, right - left);
}

#if VEC
// PoCL takes vload16 apart into narrow loads here; a vector without alignment stays one. T is ACC.
typedef ACCV __attribute__((aligned(sizeof(ACC)))) loose_pixels;
#define LOAD_PIXELS(p, i) (*(__global const loose_pixels*)((p) + (i)))

#if MAX
// Every SW-th element from x[i] on; for a stride of 2 up to x[i + 2 * VEC - 1] is read.
#if SW == 1
#define EVERY(x, i) LOAD_PIXELS(x, i)
#else
ACCV every_second(__global const T* restrict x, int i) {
  const ACCV low = LOAD_PIXELS(x, i), high = LOAD_PIXELS(x, i + VEC);
  ACCV both;  // not (ACCV)(low.even, high.even): see even_lanes in ops/lanes.cl
  both.lo = low.even, both.hi = high.even;
  return both;
}
#define EVERY(x, i) every_second(x, i)
#endif
#else
// VEC neighbours from x[i] on, each with the KH - 1 elements below it.
ACCV sum_down(__global const T* restrict x, int i, int width) {
  ACCV sum = LOAD_PIXELS(x, i);
#pragma unroll
  for (int h = 1; h < KH; ++h) sum += LOAD_PIXELS(x, i + h * width);
  return sum;
}
#endif

// VEC windows within the image, the first of which begins at x[from].
void pool_lanes(__global const T* restrict x, __global T* restrict y INDICES, int from, int width) {
#if MAX
  const LANEV places = from + SW * LANES;
  ACCV largest = EVERY(x, from);
  LANEV best = places;
#pragma unroll
  for (int h = 0; h < KH; ++h)
#pragma unroll
    for (int w = 0; w < KW; ++w) {
      const ACCV value = EVERY(x, from + h * width + w);
      const LANEV is_larger = (value > largest) | (value != value);
      largest = select(largest, value, is_larger);
      best = select(best, places + (h * width + w), is_larger);
    }
  STORE_LANES(largest, y);
  STORE_LANES(best, indices);
#else
  ACCV sum = (ACCV)(0);
#pragma unroll
  for (int w = 0; w < KW; w += SW) {
#if SW == 2
    // Rows are added before every second element is taken: both halves serve two taps.
    const ACCV low = sum_down(x, from + w, width), high = sum_down(x, from + w + VEC, width);
    ACCV even, odd;
    even.lo = low.even, even.hi = high.even;
    odd.lo = low.odd, odd.hi = high.odd;
    sum += even;
    if (w + 1 < KW) sum += odd;
#else
    sum += sum_down(x, from + w, width);
#endif
  }
  STORE_LANES(sum / DIVISOR(KH, KW), y);
#endif
}
#endif

// limit: the elements of the tensor from this plane on.
void pool_row(__global const T* restrict x, __global T* restrict y INDICES, int oh, int2 in,
              int2 out, int2 padding, long limit) {
  const int top = oh * SH - padding.x, is_whole = top >= 0 && top + KH <= in.x;
  const int first = is_whole ? min(FIRST_WHOLE, out.y) : out.y;
  const int end = max(first, END_WHOLE);
  for (int ow = 0; ow < first; ++ow) pool_one(x, y PASS_INDICES, oh, ow, in, padding);
  int ow = first;
#if VEC
  const int reach = (KH - 1) * in.y + KW - 1 + SW * VEC;
  while (ow < end && end - first >= VEC) {
    const int lane = min(ow, end - VEC);  // the last vector overlaps the one before
    const int from = top * in.y + lane * SW - padding.y;
    if (from + reach > limit) break;
#if MAX
    pool_lanes(x, y + lane, indices + lane, from, in.y);
#else
    pool_lanes(x, y + lane, from, in.y);
#endif
    ow = lane + VEC;
  }
#endif
  for (; ow < end; ++ow) {
    const int from = top * in.y + ow * SW - padding.y;
    START(from);
    for (int h = 0; h < KH; ++h)
      for (int w = 0; w < KW; ++w) TAKE(from + h * in.y + w);
    FINISH(ow, KH, KW);
  }
  for (int ow = end; ow < out.y; ++ow) pool_one(x, y PASS_INDICES, oh, ow, in, padding);
}

#if MAX
__kernel void max_pool_planes(__global const T* x, __global T* y, __global int* indices, long8 at,
                              long planes, int2 in, int2 out, int2 padding, long block) {
  x += at.s0, y += at.s1, indices += at.s2;
  FOR_PLANES
  for (int oh = 0; oh < out.x; ++oh) {
    const long to = (plane * out.x + oh) * out.y;
    pool_row(x + plane * in.x * in.y, y + to, indices + to, oh, in, out, padding,
             (planes - plane) * in.x * in.y);
  }
}
#else
__kernel void avg_pool_planes(__global const T* x, __global T* y, long8 at, long planes, int2 in,
                              int2 out, int2 padding, long block) {
  x += at.s0, y += at.s1;
  FOR_PLANES
  for (int oh = 0; oh < out.x; ++oh)
    pool_row(x + plane * in.x * in.y, y + (plane * out.x + oh) * out.y, oh, in, out, padding,
             (planes - plane) * in.x * in.y);
}
#endif
#else  // BACKWARD
__kernel void max_pool_backward_planes(__global const T* dy, __global const int* indices,
                                       __global T* dx, long8 at, long planes, int2 in, int2 out,
                                       int2 padding, long block) {
  dy += at.s0, indices += at.s1, dx += at.s2;
  const int pixels = in.x * in.y, count = out.x * out.y;
  FOR_PLANES {
    __global T* to = dx + plane * pixels;
    for (int i = 0; i < pixels; ++i) to[i] = (T)0;
    for (int o = 0; o < count; ++o) {
      // A place outside the image, which no pooling gives, must not write anywhere.
      const int place = indices[plane * count + o];
      if (place >= 0 && place < pixels) to[place] += dy[plane * count + o];
    }
  }
}
#endif
