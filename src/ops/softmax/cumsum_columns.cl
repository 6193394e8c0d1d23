// Running sums along an axis of x (outer, n, inner) whose elements lie inner > 1 apart, as in
// cumsum.cl, for CPUs: a work-item owns a strip of up to STRIP neighbouring rows and walks along
// all of them at once. Defines: T, ACC and Y of the result, STRIP.
// device(cumsum): CPU

#define BLOCK 64

__kernel void cumsum(__global const T* x, __global Y* y, long8 at, long outer, long n, long inner,
                     int reverse, long strips) {
  x += at.s0, y += at.s1;
  const long id = get_global_id(0), o = id / strips, strip = id - o * strips;
  const long first = strip * inner / strips;
  const int width = (int)((strip + 1) * inner / strips - first);
  const long start = o * n * inner + first;
  ACC before[STRIP], sum[STRIP];
  for (int c = 0; c < width; ++c) before[c] = sum[c] = (ACC)0;
  for (long i = 0; i < n; ++i) {
    const long place = start + (reverse ? n - 1 - i : i) * inner;
    __global const T* from = x + place;
    __global Y* to = y + place;
    if (i % BLOCK == 0)
      for (int c = 0; c < width; ++c) {
        before[c] += sum[c];
        sum[c] = (ACC)0;
      }
    for (int c = 0; c < width; ++c) {
      sum[c] += (ACC)LOAD_T(from, c);
      STORE_Y(to, c, before[c] + sum[c]);
    }
  }
}
