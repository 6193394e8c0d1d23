// Resized images and their gradients: x (planes, H, W), y (planes, OH, OW). A work-item owns one
// element of the result; the range is guarded. Row o of the output lies at scaled(o) / divisor of
// the input, in integers, as in upsample.h. Defines: T, ACC, LOAD_T, STORE_T, BILINEAR, ALIGN
// (0 or 1).

// How an axis of `from` elements is seen with `to` elements.
long divisor(long to) {
#if !BILINEAR
  return to;
#elif ALIGN
  return to > 1 ? to - 1 : 1;
#else
  return 2 * to;
#endif
}

long scaled(long o, long from, long to) {
#if !BILINEAR
  return o * from;
#elif ALIGN
  return to > 1 ? o * (from - 1) : 0;
#else
  return max((2 * o + 1) * from - to, 0L);
#endif
}

// OpenCL C has a function called upsample, hence the longer name.
__kernel void upsample_forward(__global const T* x, __global T* y, long8 at, ulong n, long H,
                               long W, long OH, long OW) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  x += at.s0;
  y += at.s1;
  const long ow = (long)(i % (ulong)OW);
  const ulong rows = i / (ulong)OW;
  const long oh = (long)(rows % (ulong)OH);
  __global const T* plane = x + (long)(rows / (ulong)OH) * H * W;
  const long ah = scaled(oh, H, OH), aw = scaled(ow, W, OW);
  const long h = ah / divisor(OH), w = aw / divisor(OW);
#if BILINEAR
  const ACC fh = (ACC)(ah - h * divisor(OH)) / (ACC)divisor(OH);
  const ACC fw = (ACC)(aw - w * divisor(OW)) / (ACC)divisor(OW);
  const long h1 = min(h + 1, H - 1), w1 = min(w + 1, W - 1);
  const ACC top = LOAD_T(plane, h * W + w) * ((ACC)1 - fw) + LOAD_T(plane, h * W + w1) * fw;
  const ACC bottom = LOAD_T(plane, h1 * W + w) * ((ACC)1 - fw) + LOAD_T(plane, h1 * W + w1) * fw;
  STORE_T(y, i, top * ((ACC)1 - fh) + bottom * fh);
#else
  STORE_T(y, i, LOAD_T(plane, h * W + w));
#endif
}

// How much of input i is in output o.
ACC weight(long o, long i, long from, long to) {
  const long where = scaled(o, from, to), whole = where / divisor(to);
#if BILINEAR
  const ACC rest = (ACC)(where - whole * divisor(to)) / (ACC)divisor(to);
  const long next = min(whole + 1, from - 1);
  return (whole == i ? (ACC)1 - rest : (ACC)0) + (next == i ? rest : (ACC)0);
#else
  return whole == i ? (ACC)1 : (ACC)0;
#endif
}

long first_output(long i, long from, long to) {
  return from == 1 ? 0 : clamp((i - 1) * to / from - 2, 0L, to - 1);
}

long last_output(long i, long from, long to) {
  return from == 1 ? to - 1 : clamp((i + 2) * to / from + 2, 0L, to - 1);
}

__kernel void upsample_backward(__global const T* dy, __global T* dx, long8 at, ulong n, long H,
                                long W, long OH, long OW) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  dy += at.s0;
  dx += at.s1;
  const long w = (long)(i % (ulong)W);
  const ulong rows = i / (ulong)W;
  const long h = (long)(rows % (ulong)H);
  __global const T* plane = dy + (long)(rows / (ulong)H) * OH * OW;
  const long low = first_output(w, W, OW), high = last_output(w, W, OW);
  ACC sum = 0;
  for (long oh = first_output(h, H, OH); oh <= last_output(h, H, OH); ++oh) {
    const ACC wh = weight(oh, h, H, OH);
    // Not multiplied: an infinite gradient of an element that is not read must not give NaN.
    if (wh == (ACC)0) continue;
    for (long ow = low; ow <= high; ++ow) {
      const ACC ww = weight(ow, w, W, OW);
      if (ww != (ACC)0) sum += wh * ww * LOAD_T(plane, oh * OW + ow);
    }
  }
  STORE_T(dx, i, sum);
}
