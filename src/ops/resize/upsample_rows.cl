// Resized images and their gradients as in upsample.cl, for CPUs: a work-item owns `block` rows of
// `strip` columns of the result, and takes one axis after the other. The forward kernel brings a
// row of x to its new width once for all rows that read it; the gradient adds up the rows that read
// one before it brings the sum to its width. Where columns lie is found once per work-item.
// Defines: those of image_row_macros, BILINEAR, ALIGN (0 or 1), DOUBLED (backward: rows were twice
// as long), NEAR: in how many vectors what VEC neighbours are made of lies, 0 for more than two,
// TAPS, the most outputs that read a column then, STRIP and SPAN, the most columns of the result
// and of the gradient. device(upsample_rows, upsample_backward_rows): CPU

// The gradient's terms.
#if BILINEAR
#define TERM(v, w) ((v) * (w))
#else
#define TERM(v, w) (v)
#endif
#include "ops/image_rows.cl"

typedef PLACESV __attribute__((aligned(sizeof(int)))) loose_places;
#define PLACES_OF(p) (*(loose_places*)(p))

#if NEAR
// The elements of p at these places, in order from 0 on, in NEAR vectors. (Places
// that are masked, not limited, would be read one by one.)
ACCV pick(ACC* p, PLACESV at) {
  const ACCV low = LANES_OF(p);
#if NEAR == 2
  const ACCV high = LANES_OF(p + VEC);
  const PLACESV in_low = min(at, VEC - 1), in_high = max(at - VEC, 0);
  const ACCV one = PICK(low, in_low), two = PICK(high, in_high);
  return AS_MASK(at >= VEC) ? two : one;
#else
  return PICK(low, at);
#endif
}
#endif

// Output o lies at scaled(o) / divisor of the input: exact, and in order.
int divisor(int to) {
#if !BILINEAR
  return to;
#elif ALIGN
  return max(to - 1, 1);
#else
  return 2 * to;
#endif
}
int scaled(int o, int from, int to) {
#if !BILINEAR
  return o * from;
#elif ALIGN
  return to > 1 ? o * (from - 1) : 0;
#else
  return max((2 * o + 1) * from - to, 0);
#endif
}

typedef struct {
  int low[STRIP + VEC];  // the column of x
#if BILINEAR
  ACC rest[STRIP + VEC];  // how much the next one counts
#endif
#if NEAR
  ACC part[(2 * NEAR - 1) * STRIP + 6 * VEC];  // the columns of x that are read, from part[VEC] on
#endif
} Columns;

void find_columns(Columns* to, int begin, int n, int W, int OW) {
  const int by = divisor(OW);
  for (int i = 0; i < n; ++i) {
    const int at = scaled(begin + i, W, OW), low = at / by;
    to->low[i] = low;
#if BILINEAR
    to->rest[i] = (ACC)(at - low * by) / (ACC)by;
#endif
  }
#if NEAR
  for (int i = n; i < n + VEC; ++i) {  // whole vectors
    to->low[i] = to->low[n - 1];
#if BILINEAR
    to->rest[i] = (ACC)0;
#endif
  }
#endif
}

// A row of x with the width of the result.
void widen(__global const T* x, int W, Columns* columns, ACC* to, int n) {
#if NEAR
  const int base = columns->low[0], end = min(columns->low[n - 1] + 2, W);
  ACC* part = columns->part + VEC;
  if (W < VEC) {
    for (int w = base; w < end; ++w) part[w - base] = LOAD_T(x, w);
  } else {
    for (int w = base; w < end; w += VEC) {
      const int at = min(w, W - VEC);  // the last vector overlaps the one before
      LANES_OF(part + at - base) = LOAD(x + at);
    }
  }
  part[end - base] = part[end - base - 1];  // beyond the edge is what is on it
  for (int i = 0; i < n; i += VEC) {
    const int first = columns->low[i];
    const PLACESV at = PLACES_OF(columns->low + i) - first;
    ACC* here = part + first - base;
#if BILINEAR
    const ACCV rest = LANES_OF(columns->rest + i);
    LANES_OF(to + i) = pick(here, at) * ((ACC)1 - rest) + pick(here + 1, at) * rest;
#else
    LANES_OF(to + i) = pick(here, at);
#endif
  }
#else
  for (int i = 0; i < n; ++i) {
    const int low = columns->low[i];
#if BILINEAR
    const ACC rest = columns->rest[i];
    to[i] = LOAD_T(x, low) * ((ACC)1 - rest) + LOAD_T(x, min(low + 1, W - 1)) * rest;
#else
    to[i] = LOAD_T(x, low);
#endif
  }
#endif
}

__kernel void upsample_rows(__global const T* x, __global T* y, long8 at, int rows, int H, int W,
                            int OH, int OW, int strip, int block) {
  x += at.s0, y += at.s1;
  SHARE(OW, rows);
  Columns columns;
  find_columns(&columns, begin, n, W, OW);
  // Rows h and h + 1 of x, each in the place of its kind.
  ACC wide[2][STRIP + VEC];
  int known[2] = {-1, -1};
  int plane = row / OH, oh = row - plane * OH;
  const int by = divisor(OH);
  for (; row < last_row; ++row) {
    const int where = scaled(oh, H, OH), h = where / by, low = plane * H + h;
    if (known[low & 1] != low) {
      widen(x + (long)low * W, W, &columns, wide[low & 1], n);
      known[low & 1] = low;
    }
    __global T* to = y + (long)row * OW + begin;
    ACC* top = wide[low & 1];
#if BILINEAR
    const int next = plane * H + min(h + 1, H - 1);
    if (known[next & 1] != next) {
      widen(x + (long)next * W, W, &columns, wide[next & 1], n);
      known[next & 1] = next;
    }
    ACC* bottom = wide[next & 1];
    const ACC rest = (ACC)(where - h * by) / (ACC)by, kept = (ACC)1 - rest;
#define BLEND_LANES(i) (LANES_OF(top + (i)) * kept + LANES_OF(bottom + (i)) * rest)
#define BLEND_ONE(i) (top[i] * kept + bottom[i] * rest)
    STORE_COLUMNS(to, n, BLEND_LANES, BLEND_ONE);
#else
#define COPY_LANES(i) LANES_OF(top + (i))
#define COPY_ONE(i) top[i]
    STORE_COLUMNS(to, n, COPY_LANES, COPY_ONE);
#endif
    if (++oh == OH) oh = 0, ++plane;
  }
}

// The first output at `limit` / divisor or behind.
int first_from(int limit, int from, int to) {
  int first = 0, end = to;
  while (first < end) {
    const int middle = first + (end - first) / 2;
    if (scaled(middle, from, to) < limit)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}
// Input i is in the outputs at BEFORE(i) and behind that lie before BEHIND(i).
#if BILINEAR
#define BEFORE(i, by) (((i)-1) * (by) + 1)
#else
#define BEFORE(i, by) ((i) * (by))
#endif
#define BEHIND(i, by) (((i) + 1) * (by))

// How much of input i is in such an output; `d`: how far it lies behind it.
ACC weight(int d, int by, int is_last) {
#if BILINEAR
  if (d < 0) return (ACC)(d + by) / (ACC)by;
  const ACC rest = (ACC)d / (ACC)by;
  return is_last ? (ACC)1 - rest + rest : (ACC)1 - rest;
#else
  return (ACC)1;
#endif
}

// The outputs that read the columns of the result, from the first that reads any on.
typedef struct {
  int first[STRIP + VEC];
#if NEAR
  ACC weights[TAPS][STRIP + VEC];  // 0 where there are fewer
#else
  int count[STRIP];
  ACC weights[2 * SPAN];  // of these, one column after the other
#endif
} Readers;

void find_readers(Readers* to, int begin, int n, int W, int OW) {
  const int by = divisor(OW), origin = first_from(BEFORE(begin, by), W, OW);
  int o = origin, taken = 0;
#if NEAR
  for (int t = 0; t < TAPS; ++t)
    for (int i = 0; i < n + VEC; ++i) to->weights[t][i] = (ACC)0;
#endif
  for (int i = 0; i < n; ++i) {
    const int w = begin + i, limit = BEFORE(w, by), behind = BEHIND(w, by);
    while (o < OW && scaled(o, W, OW) < limit) ++o;
    int count = 0;
    for (; o + count < OW && scaled(o + count, W, OW) < behind; ++count) {
      const ACC share = weight(scaled(o + count, W, OW) - w * by, by, w == W - 1);
#if NEAR
      to->weights[count][i] = share;
#else
      to->weights[taken++] = share;
#endif
    }
    to->first[i] = o - origin;
#if !NEAR
    to->count[i] = count;
#endif
  }
#if NEAR
  for (int i = n; i < n + VEC; ++i) to->first[i] = to->first[n - 1];
#endif
}

ACC narrow_one(ACC* sum, int count, ACC* weights) {
  ACC result = 0;
  for (int t = 0; t < count; ++t) result += TERM(sum[t], weights[t]);
  return result;
}

// The sums of a row with the width of the result.
#if NEAR
void narrow(ACC* sum, Readers* readers, ACC* to, int begin, int n, int W) {
  for (int i = 0; i < n; i += VEC) {
    const int first = readers->first[i];
    const PLACESV at = PLACES_OF(readers->first + i) - first;
    ACCV all = (ACCV)(ACC)0;
    // Without a loop: picked places that do not change in it would be taken apart before it.
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
      const ACCV v = pick(sum + first + t, at), w = LANES_OF(readers->weights[t] + i);
      // Not multiplied by 0, as in upsample.cl.
      all += w == (ACCV)(ACC)0 ? w : TERM(v, w);
    }
    LANES_OF(to + i) = all;
  }
}
#elif DOUBLED
void narrow(ACC* sum, Readers* readers, ACC* to, int begin, int n, int W) {
#if BILINEAR
  // Away from the edge the sums begin with what lies before the first column's own.
  const int skip = begin == 0 ? 0 : 1;
#else
  const int skip = 0;
#endif
  for (int i = 0; i < n; i += VEC) {
    ACC* here = sum + 2 * i + skip;
    const ACCV a = LANES_OF(here), b = LANES_OF(here + VEC);
    ACCV even, odd;
    even.lo = a.even, even.hi = b.even, odd.lo = a.odd, odd.hi = b.odd;
#if BILINEAR
    const ACCV c = LANES_OF(here - 1), d = LANES_OF(here - 1 + VEC);
    const ACCV e = LANES_OF(here + 2), f = LANES_OF(here + 2 + VEC);
    ACCV before, behind;
    before.lo = c.even, before.hi = d.even, behind.lo = e.even, behind.hi = f.even;
    LANES_OF(to + i) = (even + odd) * (ACC)0.75 + (before + behind) * (ACC)0.25;
#else
    LANES_OF(to + i) = even + odd;
#endif
  }
#if BILINEAR
  // The columns on the edge have other weights.
  int taken = 0;
  if (begin == 0) to[0] = narrow_one(sum, readers->count[0], readers->weights);
  if (begin + n == W) {
    for (int i = 0; i + 1 < n; ++i) taken += readers->count[i];
    to[n - 1] =
        narrow_one(sum + readers->first[n - 1], readers->count[n - 1], readers->weights + taken);
  }
#endif
}
#else
void narrow(ACC* sum, Readers* readers, ACC* to, int begin, int n, int W) {
  int taken = 0;
  for (int i = 0; i < n; ++i) {
    const int count = readers->count[i];
    to[i] = narrow_one(sum + readers->first[i], count, readers->weights + taken);
    taken += count;
  }
}
#endif

__kernel void upsample_backward_rows(__global const T* dy, __global T* dx, long8 at, int rows,
                                     int H, int W, int OH, int OW, int strip, int block) {
  dy += at.s0, dx += at.s1;
  SHARE(W, rows);
  Readers readers;
  find_readers(&readers, begin, n, W, OW);
  const int low = first_from(BEFORE(begin, divisor(OW)), W, OW);
  const int span = first_from(BEHIND(begin + n - 1, divisor(OW)), W, OW) - low;
  ACC sums[SPAN + 6 * VEC + TAPS], last[VEC], to[STRIP + VEC];
  ACC* sum = sums + VEC;
  int plane = row / H, h = row - plane * H;
  const int by = divisor(OH);
  int top = first_from(BEFORE(h, by), H, OH);
  for (; row < last_row; ++row) {
    while (top < OH && scaled(top, H, OH) < BEFORE(h, by)) ++top;
    __global const T* from = dy + (long)plane * OH * OW + low;
    int oh = top;
    for (; oh < OH; ++oh) {
      const int d = scaled(oh, H, OH) - h * by;
      if (d >= by) break;
      add_row(sum, last, from + (long)oh * OW, weight(d, by, h == H - 1), span, oh == top);
    }
    if (oh == top || span == 0) {
      for (int i = 0; i < n; ++i) to[i] = (ACC)0;
    } else {
      end_rows(sum, last, span);
      narrow(sum, &readers, to, begin, n, W);
    }
    __global T* result = dx + (long)row * W + begin;
#define RESULT_LANES(i) LANES_OF(to + (i))
#define RESULT_ONE(i) to[i]
    STORE_COLUMNS(result, n, RESULT_LANES, RESULT_ONE);
    if (++h == H) h = 0, top = 0, ++plane;
  }
}
