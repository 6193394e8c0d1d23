// Running sums along the rows of x (outer, n, inner), from the end when `reverse` is 1. A work-item
// owns a row and sums in blocks, so that errors grow slowly. Defines: T, ACC and Y of the result.

#define BLOCK 64

// coalescing(cumsum): neighbouring items read and write neighbours where inner > 1; along the last
// axis each walks its own row, because a running sum is taken in one order.
__kernel void cumsum(__global const T* x, __global Y* y, long8 at, long outer, long n, long inner,
                     int reverse) {
  x += at.s0, y += at.s1;
  const long row = get_global_id(0);
  if (row >= outer * inner) return;
  const long start = row / inner * n * inner + row % inner;
  x += start, y += start;
  ACC before = 0;
  for (long a = 0; a < n; a += BLOCK) {
    const long end = min(n, a + BLOCK);
    ACC sum = 0;
    for (long i = a; i < end; ++i) {
      const long place = (reverse ? n - 1 - i : i) * inner;
      sum += (ACC)LOAD_T(x, place);
      STORE_Y(y, place, before + sum);
    }
    before += sum;
  }
}
