// Resized images and their gradients: x (planes, H, W), y (planes, OH, OW). A work-item owns one
// element of the result; the range is guarded. Row o of the output lies at scaled(o) / divisor of
// the input, in integers, as in upsample.h. Defines: T, ACC, LOAD_T, STORE_T, BILINEAR, ALIGN
// (0 or 1), POS (int where all positions fit: long divisions are slow) with UPOS, its unsigned
// counterpart.

// How an axis of `from` elements is seen with `to` elements.
POS divisor(POS to) {
#if !BILINEAR
  return to;
#elif ALIGN
  return to > 1 ? to - 1 : 1;
#else
  return 2 * to;
#endif
}

POS scaled(POS o, POS from, POS to) {
#if !BILINEAR
  return o * from;
#elif ALIGN
  return to > 1 ? o * (from - 1) : 0;
#else
  return max((2 * o + 1) * from - to, (POS)0);
#endif
}

// OpenCL C has a function called upsample, hence the longer name.
// coalescing(upsample_forward): neighbouring items write neighbours and read the same or near
// elements of a row.
__kernel void upsample_forward(__global const T* x, __global T* y, long8 at, ulong n, POS H, POS W,
                               POS OH, POS OW) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  x += at.s0;
  y += at.s1;
  const UPOS rows = (UPOS)i / (UPOS)OW;
  const POS ow = (POS)((UPOS)i - rows * (UPOS)OW), oh = (POS)(rows % (UPOS)OH);
  __global const T* plane = x + (long)(rows / (UPOS)OH) * H * W;
  const POS ah = scaled(oh, H, OH), aw = scaled(ow, W, OW);
  const POS h = ah / divisor(OH), w = aw / divisor(OW);
#if BILINEAR
  const ACC fh = (ACC)(ah - h * divisor(OH)) / (ACC)divisor(OH);
  const ACC fw = (ACC)(aw - w * divisor(OW)) / (ACC)divisor(OW);
  const POS h1 = min(h + 1, H - 1), w1 = min(w + 1, W - 1);
  const ACC top = LOAD_T(plane, h * W + w) * ((ACC)1 - fw) + LOAD_T(plane, h * W + w1) * fw;
  const ACC bottom = LOAD_T(plane, h1 * W + w) * ((ACC)1 - fw) + LOAD_T(plane, h1 * W + w1) * fw;
  STORE_T(y, i, top * ((ACC)1 - fh) + bottom * fh);
#else
  STORE_T(y, i, LOAD_T(plane, h * W + w));
#endif
}

// How much of input i is in output o.
ACC weight(POS o, POS i, POS from, POS to) {
  const POS where = scaled(o, from, to), whole = where / divisor(to);
#if BILINEAR
  const ACC rest = (ACC)(where - whole * divisor(to)) / (ACC)divisor(to);
  const POS next = min(whole + 1, from - 1);
  return (whole == i ? (ACC)1 - rest : (ACC)0) + (next == i ? rest : (ACC)0);
#else
  return whole == i ? (ACC)1 : (ACC)0;
#endif
}

POS first_output(POS i, POS from, POS to) {
  return from == 1 ? 0 : clamp((i - 1) * to / from - 2, (POS)0, to - 1);
}

POS last_output(POS i, POS from, POS to) {
  return from == 1 ? to - 1 : clamp((i + 2) * to / from + 2, (POS)0, to - 1);
}

// occupancy(upsample_backward): positions of 64 bits, which only huge images need, take 55
// registers, of which Vega has few.
// coalescing(upsample_backward): neighbouring items write neighbours and walk near elements of the
// same rows of dy.
__kernel void upsample_backward(__global const T* dy, __global T* dx, long8 at, ulong n, POS H,
                                POS W, POS OH, POS OW) {
  const ulong i = get_global_id(0);
  if (i >= n) return;
  dy += at.s0;
  dx += at.s1;
  const UPOS rows = (UPOS)i / (UPOS)W;
  const POS w = (POS)((UPOS)i - rows * (UPOS)W), h = (POS)(rows % (UPOS)H);
  __global const T* plane = dy + (long)(rows / (UPOS)H) * OH * OW;
  const POS low = first_output(w, W, OW), high = last_output(w, W, OW);
  ACC sum = 0;
  for (POS oh = first_output(h, H, OH); oh <= last_output(h, H, OH); ++oh) {
    const ACC wh = weight(oh, h, H, OH);
    // Not multiplied: an infinite gradient of an element that is not read must not give NaN.
    if (wh == (ACC)0) continue;
    for (POS ow = low; ow <= high; ++ow) {
      const ACC ww = weight(ow, w, W, OW);
      if (ww != (ACC)0) sum += wh * ww * LOAD_T(plane, oh * OW + ow);
    }
  }
  STORE_T(dx, i, sum);
}
