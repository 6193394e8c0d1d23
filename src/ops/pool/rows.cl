// Pooling as in pool.cl by rows, for CPUs (ops/image_rows.cl): averages and maxima of adaptive
// windows, and the gradients of all averages, whose rows are added up before they are spread over
// the columns. Nothing is divided per element. Defines: those of image_row_macros, ADAPTIVE,
// COUNT_PADDING, MAX, BACKWARD (0 or 1), STRIP and SPAN, the most columns of a result and of what
// it is made of; with fixed windows KH KW SH SW, window and stride. device(avg_pool_rows,
// max_pool_rows, avg_pool_backward_rows): CPU

#if BACKWARD
#define TERM(v, w) ((v) * (w))
#endif
#include "ops/image_rows.cl"

// The pixels of window o, and the windows that cover pixel i: as in geometry.h.
#if ADAPTIVE
#define WINDOW_BEGIN(o, c) ((o)*in.c / out.c)
#define WINDOW_END(o, c) ((((o) + 1) * in.c + out.c - 1) / out.c)
#define FIRST_WINDOW(i, K, S, c) ((i)*out.c / in.c)
#define LAST_WINDOW(i, S, c) ((((i) + 1) * out.c + in.c - 1) / in.c - 1)
#define KH 0
#define KW 0
#define SH 0
#define SW 0
#else
#define FIRST_WINDOW(i, K, S, c) ((i) + padding.c < K ? 0 : ((i) + padding.c - K) / S + 1)
#define LAST_WINDOW(i, S, c) min(((i) + padding.c) / S, out.c - 1)
#endif

#if !BACKWARD
#define PIECE 4096  // elements that are added up before they join the others

#if !MAX
ACC sum_run(__global const T* x, int n) {
  ACC total = 0;
  for (int from = 0; from < n; from += PIECE) {
    const int end = min(PIECE, n - from);
    __global const T* xs = x + from;
    ACCV s0 = (ACCV)(ACC)0, s1 = s0, s2 = s0, s3 = s0;
    int i = 0;
    for (; i + 4 * VEC <= end; i += 4 * VEC) {
      s0 += LOAD(xs + i), s1 += LOAD(xs + i + VEC);
      s2 += LOAD(xs + i + 2 * VEC), s3 += LOAD(xs + i + 3 * VEC);
    }
    for (; i + VEC <= end; i += VEC) s0 += LOAD(xs + i);
    ACC lanes[VEC], sum = 0;
    LANES_OF(lanes) = (s0 + s1) + (s2 + s3);
#pragma unroll
    for (int half_of = VEC / 2; half_of > 0; half_of /= 2)
#pragma unroll
      for (int l = 0; l < half_of; ++l) lanes[l] += lanes[l + half_of];
    for (; i < end; ++i) sum += LOAD_T(xs, i);
    total += sum + lanes[0];
  }
  return total;
}

// The sums of the columns of some rows, `step` apart.
void sum_columns(__global const T* x, int step, int rows, int n, ACC* to) {
  if (n < VEC) {
    for (int i = 0; i < n; ++i) {
      ACC sum = 0;
      for (int r = 0; r < rows; ++r) sum += LOAD_T(x, r * step + i);
      to[i] = sum;
    }
    return;
  }
  for (int from = 0; from < n; from += VEC) {
    const int i = min(from, n - VEC);  // the last vector overlaps the one before
    ACCV sum = LOAD(x + i);
    for (int r = 1; r < rows; ++r) sum += LOAD(x + r * step + i);
    LANES_OF(to + i) = sum;
  }
}
#endif

#if MAX
// What is larger than everything before it: NaN, the last one, or the first of the largest.
typedef struct {
  ACC value;
  int at;
} Largest;
Largest larger_of(Largest a, Largest b) {
  const int nan_a = a.value != a.value, nan_b = b.value != b.value;
  const int later = b.at > a.at, larger = b.value > a.value, equal = b.value == a.value;
  const int takes = nan_b ? !nan_a || later : !nan_a && (larger || (equal && !later));
  if (takes) return b;
  return a;
}

// The largest of the columns of some rows, and where they are; the first lies at `at`.
void max_columns(__global const T* x, int at, int step, int rows, int n, ACC* to, int* places) {
  x += at;
  if (n < VEC) {
    for (int i = 0; i < n; ++i) {
      Largest best = {LOAD_T(x, i), at + i};
      for (int r = 1; r < rows; ++r) {
        const ACC value = LOAD_T(x, r * step + i);
        const int takes = value > best.value || value != value;
        best.value = takes ? value : best.value;
        best.at = takes ? at + r * step + i : best.at;
      }
      to[i] = best.value, places[i] = best.at;
    }
    return;
  }
  for (int from = 0; from < n; from += VEC) {
    const int i = min(from, n - VEC);
    ACCV best = LOAD(x + i);
    MASKV rows_of = (MASKV)0;
    for (int r = 1; r < rows; ++r) {
      const ACCV value = LOAD(x + r * step + i);
      const MASKV takes = (value > best) | (value != value);
      best = takes ? value : best;
      rows_of = takes ? (MASKV)r : rows_of;
    }
    LANES_OF(to + i) = best;
    const MASKV place = rows_of * (MASKV)step + LANES;
    for (int l = 0; l < VEC; ++l) places[i + l] = at + i + (int)((const MASK*)&place)[l];
  }
}

Largest largest_of(Largest best, const ACC* values, const int* places, int n) {
  for (int i = 0; i < n; ++i) {
    const Largest next = {values[i], places[i]};
    best = larger_of(best, next);
  }
  return best;
}

// Of neighbours: as rows of FOLDED columns.
#define FOLDED (4 * VEC)
Largest max_run(__global const T* x, int at, int n) {
  Largest best = {LOAD_T(x, at), at};
  if (n >= FOLDED) {
    ACC values[FOLDED];
    int places[FOLDED];
    max_columns(x, at, FOLDED, n / FOLDED, FOLDED, values, places);
    best = largest_of(best, values, places, FOLDED);
  }
  for (int i = n / FOLDED * FOLDED; i < n; ++i) {
    const Largest next = {LOAD_T(x, at + i), at + i};
    best = larger_of(best, next);
  }
  return best;
}
#define INDICES , __global int* indices
#else
#define INDICES
#endif

#if MAX
__kernel void max_pool_rows(__global const T* x, __global T* y, __global int* indices, long8 at,
                            int rows, int2 in, int2 out, int2 padding, int strip, int block) {
  indices += at.s2;
#else
__kernel void avg_pool_rows(__global const T* x, __global T* y, long8 at, int rows, int2 in,
                            int2 out, int2 padding, int strip, int block) {
#endif
  x += at.s0, y += at.s1;
  SHARE(out.y, rows);
  int left[STRIP], right[STRIP];
  for (int i = 0; i < n; ++i) {
    left[i] = WINDOW_BEGIN(begin + i, y);
    right[i] = WINDOW_END(begin + i, y);
  }
  ACC columns[SPAN];
#if MAX
  int places[SPAN];
#endif
  int plane = row / out.x, oh = row - plane * out.x;
  for (; row < last_row; ++row) {
    const int top = WINDOW_BEGIN(oh, x), height = WINDOW_END(oh, x) - top;
    __global const T* image = x + (long)plane * in.x * in.y;
    const long to = (long)row * out.y + begin;
    int i = 0;
    while (i < n) {
      // As many windows as there is room for, or a wide one.
      int end = n;
      while (end > i + 1 && right[end - 1] - left[i] > SPAN) --end;
      const int width = right[end - 1] - left[i], first = top * in.y + left[i];
      if (width == in.y || width > SPAN) {
        if (end == i + 1) {
          const int whole = width == in.y;  // one row after the other
          const int runs = whole ? 1 : height, length = whole ? height * in.y : width;
#if MAX
          Largest best = max_run(image, first, length);
          for (int h = 1; h < runs; ++h)
            best = larger_of(best, max_run(image, first + h * in.y, length));
          STORE_T(y, to + i, best.value);
          indices[to + i] = best.at;
#else
          ACC sum = 0;
          for (int h = 0; h < runs; ++h) sum += sum_run(image + first + h * in.y, length);
          STORE_T(y, to + i, sum / (ACC)((long)height * width));
#endif
          i = end;
          continue;
        }
      }
#if MAX
      max_columns(image, first, in.y, height, width, columns, places);
#else
      sum_columns(image + first, in.y, height, width, columns);
#endif
      const int origin = left[i];
      for (; i < end; ++i) {
        const int from = left[i] - origin, count = right[i] - left[i];
#if MAX
        Largest best = {columns[from], places[from]};
        best = largest_of(best, columns + from, places + from, count);
        STORE_T(y, to + i, best.value);
        indices[to + i] = best.at;
#else
        ACC sum = 0;
        for (int w = 0; w < count; ++w) sum += columns[from + w];
        STORE_T(y, to + i, sum / (ACC)(height * count));
#endif
      }
    }
    if (++oh == out.x) oh = 0, ++plane;
  }
}
#else  // BACKWARD

// How much of a gradient comes to one of `size` pixels along an axis.
#if ADAPTIVE
#define SHARE_OF(o, K, S, c) ((ACC)1 / (ACC)(WINDOW_END(o, c) - WINDOW_BEGIN(o, c)))
#elif COUNT_PADDING
#define SHARE_OF(o, K, S, c) ((ACC)1 / (ACC)(K))
#else
#define SHARE_OF(o, K, S, c) \
  ((ACC)1 / (ACC)(min((o)*S - padding.c + K, in.c) - max((o)*S - padding.c, 0)))
#endif

// Neighbours of the result are sums of neighbours, in vectors, where windows are so near.
#define IN_VECTORS (!ADAPTIVE && SW <= 2 && KW <= 16)
#define PAD (IN_VECTORS ? KW + 3 * VEC : VEC)

__kernel void avg_pool_backward_rows(__global const T* dy, __global T* dx, long8 at, int rows,
                                     int2 in, int2 out, int2 padding, int strip, int block) {
  dy += at.s0, dx += at.s1;
  SHARE(in.y, rows);
  const int low = FIRST_WINDOW(begin, KW, SW, y), high = LAST_WINDOW(begin + n - 1, SW, y);
  const int span = max(high - low + 1, 0);
  // Windows that do not exist give nothing.
  ACC sums[SPAN + 2 * PAD], shares[SPAN + VEC], last[VEC], wide[STRIP + 2 * VEC];
  ACC* sum = sums + PAD;
  for (int i = 0; i < span + 2 * PAD; ++i) sums[i] = (ACC)0;
  for (int i = 0; i < span; ++i) shares[i] = SHARE_OF(low + i, KW, SW, y);
#if !IN_VECTORS
  int first[STRIP], count[STRIP];
  const int equal = ADAPTIVE && out.y == 1;  // the columns of a row are
  for (int i = 0; i < n && !equal; ++i) {
    first[i] = FIRST_WINDOW(begin + i, KW, SW, y) - low;
    count[i] = LAST_WINDOW(begin + i, SW, y) - low + 1 - first[i];
  }
#endif
  int plane = row / in.x, h = row - plane * in.x, top = -1, bottom = -1;
  for (; row < last_row; ++row) {
    const int new_top = FIRST_WINDOW(h, KH, SH, x), new_bottom = LAST_WINDOW(h, SH, x);
    // Rows that the same windows cover are equal.
    if (new_top != top || new_bottom != bottom) {
      top = new_top, bottom = new_bottom;
      for (int oh = top; oh <= bottom; ++oh)
        add_row(sum, last, dy + ((long)plane * out.x + oh) * out.y + low, SHARE_OF(oh, KH, SH, x),
                span, oh == top);
      if (bottom >= top) {
        end_rows(sum, last, span);
        int i = 0;
        for (; i + VEC <= span; i += VEC)
          LANES_OF(sum + i) = LANES_OF(sum + i) * LANES_OF(shares + i);
        for (; i < span; ++i) sum[i] *= shares[i];
      } else {
        for (int i = 0; i < span; ++i) sum[i] = (ACC)0;
      }
#if !IN_VECTORS
      for (int i = 0; i < n && equal; i += VEC) LANES_OF(wide + i) = (ACCV)sum[0];
      for (int i = 0; i < n && !equal; ++i) {
        ACC all = 0;
        for (int k = 0; k < count[i]; ++k) all += sum[first[i] + k];
        wide[i] = all;
      }
#elif SW == 1
      // Window o covers pixel i with its element j = i + padding - o.
      const ACC* here = sum + (begin + padding.y - low);
      for (int i = 0; i < n; i += VEC) {
        ACCV all = (ACCV)(ACC)0;
#pragma unroll
        for (int j = 0; j < KW; ++j) all += *(const loose_lanes*)(here + i - j);
        LANES_OF(wide + i) = all;
      }
#else
      // Every second pixel with every second element.
      const int odd = (begin + padding.y) & 1, half_of = (begin + padding.y - odd) / 2 - low;
      for (int i = 0; i < n; i += 2 * VEC) {
        const ACC* here = sum + half_of + i / 2;
        ACCV one = (ACCV)(ACC)0, two = one, a, b;
        for (int j = odd; j < KW; j += 2) one += *(const loose_lanes*)(here - j / 2);
        for (int j = 1 - odd; j < KW; j += 2) two += *(const loose_lanes*)(here + odd - j / 2);
        a.even = one.lo, a.odd = two.lo, b.even = one.hi, b.odd = two.hi;
        LANES_OF(wide + i) = a, LANES_OF(wide + i + VEC) = b;
      }
#endif
    }
    __global T* to = dx + (long)row * in.y + begin;
#define WIDE_LANES(i) LANES_OF(wide + (i))
#define WIDE_ONE(i) wide[i]
    STORE_COLUMNS(to, n, WIDE_LANES, WIDE_ONE);
    if (++h == in.x) h = 0, top = bottom = -1, ++plane;
  }
}
#endif
