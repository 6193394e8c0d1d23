// Constant padding in one pass on CPUs, a range of the rows of y per work-item: a row is either
// all border, or border, a row of x and border again. Rows are numbered over the outer axes of y,
// innermost first: sizes and, in it, where x begins and how many of its rows it has there. Defines:
// T (an unsigned type of the element's size), LANES (of T in the longest vector), AXES (1 to 7
// outer axes), LONGEST and STREAMS (run.cl).

#include "tensor/kernels/run.cl"

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
typedef GLUE(T, LANES) __attribute__((aligned(sizeof(T)))) lanes;

static inline void fill_run(global T* to, long n, T value) {
  long i = 0;
  for (; i + LANES <= n; i += LANES) *(global lanes*)(to + i) = (lanes)(value);
  if (i == n) return;
  if (n >= LANES)
    *(global lanes*)(to + n - LANES) = (lanes)(value);
  else
    for (; i < n; ++i) to[i] = value;
}

// device(pad_rows): CPU
__kernel void pad_rows(__global const T* x, __global T* y, long8 at, ulong rows, ulong per_item,
                       ulong bits, long left, long inner, long width, long8 sizes, long8 before,
                       long8 inside) {
  long row = (long)(get_global_id(0) * per_item);
  if (row >= (long)rows) return;
  const long end = min(row + (long)per_item, (long)rows);
  x += at.s0;
  y += at.s1 + row * width;
  const T value = (T)bits;
  long size[8], first[8], count[8], place[AXES];
  vstore4(sizes.lo, 0, size), vstore4(sizes.hi, 0, size + 4);
  vstore4(before.lo, 0, first), vstore4(before.hi, 0, first + 4);
  vstore4(inside.lo, 0, count), vstore4(inside.hi, 0, count + 4);
  long rest = row;
  for (int axis = 0; axis < AXES; ++axis) {
    place[axis] = rest % size[axis] - first[axis];
    rest /= size[axis];
  }
  while (row < end) {
    // Rows along the innermost outer axis: which of them are of x is a matter of that axis alone.
    const long to_end = size[0] - first[0] - place[0];
    const int n = (int)min(end - row, to_end);
    bool is_x = true;
    long from = 0;
    for (int axis = AXES; axis-- > 1;) {
      is_x &= place[axis] >= 0 && place[axis] < count[axis];
      from = from * count[axis] + place[axis];
    }
    const long begin_x = is_x ? clamp(-place[0], 0L, (long)n) : n;
    const long end_x = is_x ? clamp(count[0] - place[0], begin_x, (long)n) : n;
    fill_run(y, begin_x * width, value);
    global const T* source = x + (from * count[0] + place[0]) * inner;
    for (int k = (int)begin_x; k < (int)end_x; ++k) {
      global T* to = y + k * width;
      fill_run(to, left, value);
      copy_run((global const uchar*)(source + k * inner), (global uchar*)(to + left),
               (int)(inner * (long)sizeof(T)));
      fill_run(to + left + inner, width - left - inner, value);
    }
    fill_run(y + end_x * width, (n - end_x) * width, value);
    y += n * width;
    row += n;
    place[0] += n;
    for (int axis = 0; axis < AXES && place[axis] >= size[axis] - first[axis]; ++axis) {
      place[axis] = -first[axis];
      if (axis + 1 < AXES) ++place[axis + 1];
    }
  }
}
