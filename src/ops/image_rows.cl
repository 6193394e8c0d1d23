// What kernels for CPUs share that go through images by rows: a work-item owns `block` rows of
// `strip` columns of the result, and keeps rows in arrays of its own. Defines: those of
// image_row_macros (ops/image_rows.h), and TERM(v, w) where rows are added with a weight.

typedef ACCV __attribute__((aligned(sizeof(ACC)))) loose_lanes;
#define LANES_OF(p) (*(loose_lanes*)(p))
#ifndef TERM
#define TERM(v, w) (v)
#endif

// This work-item's columns, `n` from `begin` on, and rows, [row, last_row).
#define SHARE(width, rows)                                                \
  const int item = (int)get_global_id(0);                                 \
  const int strips = (width + strip - 1) / strip;                         \
  const int begin = item % strips * strip, n = min(strip, width - begin); \
  int row = item / strips * block;                                        \
  const int last_row = (int)min((long)rows, (long)row + block);           \
  if (row >= last_row) return

// n columns of the result at `to`: lanes(i) are a vector of them, one(i) is one.
#define STORE_COLUMNS(to, n, lanes, one)                             \
  if (n < VEC) {                                                     \
    for (int i = 0; i < n; ++i) STORE_T(to, i, one(i));              \
  } else {                                                           \
    for (int i = 0; i + VEC <= n; i += VEC) STORE(lanes(i), to + i); \
    /* The last vector overlaps the one before. */                   \
    if (n % VEC != 0) STORE(lanes(n - VEC), to + n - VEC);           \
  }

// Adds a row of n elements to `sum`; the last vector of the row has an accumulator of its own,
// which end_rows puts in its place.
void add_row(ACC* sum, ACC* last, __global const T* row, ACC w, int n, int is_first) {
  if (n < VEC) {
    for (int i = 0; i < n; ++i)
      sum[i] = is_first ? TERM(LOAD_T(row, i), w) : sum[i] + TERM(LOAD_T(row, i), w);
    return;
  }
  const ACCV end = TERM(LOAD(row + n - VEC), w);
  if (is_first) {
    for (int i = 0; i + VEC <= n; i += VEC) LANES_OF(sum + i) = TERM(LOAD(row + i), w);
    LANES_OF(last) = end;
  } else {
    for (int i = 0; i + VEC <= n; i += VEC)
      LANES_OF(sum + i) = LANES_OF(sum + i) + TERM(LOAD(row + i), w);
    LANES_OF(last) = LANES_OF(last) + end;
  }
}
void end_rows(ACC* sum, ACC* last, int n) {
  if (n >= VEC) LANES_OF(sum + n - VEC) = LANES_OF(last);
}
